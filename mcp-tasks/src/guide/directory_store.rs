use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Error, ErrorKind, Result};
use std::{fs, fs::File, future::ready, path::PathBuf, time::Duration};

use mcp_tasks_core::store::{CasBackend, CasEntry, CasOutcome, CasVersion, CasWrite, Expect, StoreError, StoreFuture};

/// A directory, with a file for each key: its version in eight bytes, then the value.
#[derive(Debug)]
pub struct Directory(pub PathBuf);

impl Directory {
    // Whatever characters a key has, its digits are a file's name.
    fn file(&self, key: &str) -> PathBuf {
        self.0.join(key.bytes().map(|b| format!("{b:02x}")).collect::<String>())
    }

    fn read(&self, key: &str) -> Result<Option<CasEntry>> {
        let bytes = match fs::read(self.file(key)) {
            Err(error) if [ErrorKind::NotFound, ErrorKind::InvalidFilename].contains(&error.kind()) => return Ok(None),
            read => read?,
        };
        let (version, value) = bytes.split_first_chunk().ok_or(ErrorKind::InvalidData)?;
        let version = CasVersion::new(u64::from_be_bytes(*version));
        Ok(Some(CasEntry::new(value.to_vec(), version)))
    }

    fn write(&self, key: &str, expect: Expect, value: &[u8]) -> Result<CasOutcome> {
        // Held by one process, and one of its threads, at a time. The system takes it back when the process dies.
        let lock = File::create(self.0.join("lock"))?;
        let locked = lock.try_lock();
        let present = self.read(key)?.map(|entry| entry.version);
        // Where another process is writing, CasStore waits a little, longer each time, and begins again.
        if locked.is_err() || expect != present.map_or(Expect::Absent, Expect::Version) {
            return Ok(CasOutcome::Conflict);
        }
        // No two states of a key may have one version. A counter in its file, which goes with the key, would not do.
        let (new, version) = (self.0.join("new"), RandomState::new().build_hasher().finish());
        // Readers, and a process that starts after a crash, find the one file or the other, whole.
        fs::write(&new, [&version.to_be_bytes(), value].concat())?;
        File::open(&new)?.sync_all()?;
        fs::rename(new, self.file(key))?;
        File::open(&self.0)?.sync_all()?;
        Ok(CasOutcome::Applied(CasVersion::new(version)))
    }

    fn delete(&self, key: &str, version: Option<CasVersion>) -> Result<bool> {
        let lock = File::create(self.0.join("lock"))?;
        lock.lock()?;
        let present = self.read(key)?.map(|entry| entry.version);
        let is_meant = present.is_some() && (version.is_none() || version == present);
        let removed = is_meant.then(|| fs::remove_file(self.file(key)));
        removed.transpose().map(|removed| removed.is_some())
    }
}

// What was perhaps done and perhaps not, and may be tried again.
fn unavailable(error: Error) -> StoreError {
    let (reason, source) = ("the directory of tasks cannot be used".into(), Some(error.into()));
    StoreError::Unavailable { reason, source }
}

impl CasBackend for Directory {
    fn get<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<CasEntry>> {
        Box::pin(ready(self.read(key).map_err(unavailable)))
    }

    fn compare_and_set<'a>(&'a self, key: &'a str, expect: Expect, write: CasWrite<'a>) -> StoreFuture<'a, CasOutcome> {
        Box::pin(ready(self.write(key, expect, write.value).map_err(unavailable)))
    }

    fn remove<'a>(&'a self, key: &'a str, version: Option<CasVersion>) -> StoreFuture<'a, bool> {
        Box::pin(ready(self.delete(key, version).map_err(unavailable)))
    }

    fn pause(&self, duration: Duration) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            tokio::time::sleep(duration).await;
            Ok(())
        })
    }
}
