//! scans
