//! Stores on what they really run on: files and servers, processes that are killed, disks that are full.

mod alone;
mod guide;
mod memory;
mod records;
mod servers;
mod sqlite;
