//! Stores on what they really run on: files and servers, processes that are killed, disks that are full.

mod alone;
mod guide;
mod kept;
mod memory;
mod nats;
mod nodes;
mod postgres;
mod records;
mod redis;
mod servers;
mod sqlite;
