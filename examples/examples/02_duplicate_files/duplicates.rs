//! Finds files with equal content, and removes the copies: ordinary blocking code, without a word about MCP.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Read at a time: large enough for the disk, small enough to stop soon.
const CHUNK: usize = 256 * 1024;

/// The directory outside which nothing is read or removed.
#[derive(Debug)]
pub(crate) struct Root(PathBuf);

/// Why a path is not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("`{0}` is outside the directory this server may touch")]
    Outside(String),
    #[error("`{0}` is not a directory")]
    NotADirectory(String),
    #[error("`{path}` cannot be opened")]
    Io { path: String, source: io::Error },
}

impl Root {
    pub(crate) fn new(path: &Path) -> Result<Self, Refused> {
        let root = fs::canonicalize(path).map_err(|source| Refused::Io {
            path: path.display().to_string(),
            source,
        })?;
        if root.is_dir() {
            Ok(Self(root))
        } else {
            Err(Refused::NotADirectory(path.display().to_string()))
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A directory inside the root, from a path that is relative to it or absolute. Where symbolic links lead is what
    /// counts. What is outside is refused before it is looked at more closely, so that a refusal tells nothing about it.
    pub(crate) fn directory(&self, path: &str) -> Result<PathBuf, Refused> {
        let outside = || Refused::Outside(path.to_owned());
        let steps_up = Path::new(path)
            .components()
            .any(|part| part == std::path::Component::ParentDir);
        let joined = self.0.join(path);
        if steps_up || !joined.starts_with(&self.0) {
            return Err(outside());
        }
        let found = fs::canonicalize(joined).map_err(|source| Refused::Io {
            path: path.to_owned(),
            source,
        })?;
        if !found.starts_with(&self.0) {
            return Err(outside());
        }
        if found.is_dir() {
            Ok(found)
        } else {
            Err(Refused::NotADirectory(path.to_owned()))
        }
    }
}

/// What tells that a file is the one it was, with the content it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    len: u64,
    modified_ns: u128,
    /// When content or attributes last changed, which cannot be set back, device and number; zero where there are none.
    changed_ns: i128,
    device: u64,
    number: u64,
}

impl Stamp {
    fn of(metadata: &Metadata) -> io::Result<Self> {
        let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        #[cfg(unix)]
        let (changed_ns, device, number) = {
            use std::os::unix::fs::MetadataExt;
            let changed_ns = i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec());
            (changed_ns, metadata.dev(), metadata.ino())
        };
        #[cfg(not(unix))]
        let (changed_ns, device, number) = (0, 0, 0);
        Ok(Self {
            len: metadata.len(),
            modified_ns: modified.as_nanos(),
            changed_ns,
            device,
            number,
        })
    }

    /// Of the file at `path` itself, if it is an ordinary one: symbolic links are not followed.
    fn at(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        if metadata.is_file() {
            Self::of(&metadata)
        } else {
            Err(io::Error::other("it is no ordinary file any more"))
        }
    }
}

/// A file as it was when it was hashed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hashed {
    pub(crate) path: String,
    stamp: Stamp,
}

/// Files with equal content. The oldest is kept; of files of one age, the first by path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) sha256: String,
    pub(crate) len: u64,
    pub(crate) kept: Hashed,
    pub(crate) copies: Vec<Hashed>,
}

/// A file or directory that was left out, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Skipped {
    pub(crate) path: String,
    pub(crate) reason: String,
}

impl Skipped {
    fn new(path: &Path, reason: impl ToString) -> Self {
        Self {
            path: path.display().to_string(),
            reason: reason.to_string(),
        }
    }
}

/// What a search found.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) directory: String,
    pub(crate) files: u64,
    pub(crate) groups: Vec<Group>,
    pub(crate) skipped: Vec<Skipped>,
}

impl Found {
    pub(crate) fn copies(&self) -> usize {
        self.groups.iter().map(|group| group.copies.len()).sum()
    }

    /// Bytes that the copies take.
    pub(crate) fn wasted(&self) -> u64 {
        self.groups
            .iter()
            .map(|group| group.len * group.copies.len() as u64)
            .sum()
    }
}

/// How a search is followed and stopped.
pub(crate) trait Watch {
    /// Whether to give up.
    fn stopped(&self) -> bool;
    /// `read` of `total` bytes are hashed; `path` is at work.
    fn read(&mut self, read: u64, total: u64, path: &str);
}

/// The search was stopped.
#[derive(Debug, thiserror::Error)]
#[error("stopped")]
pub(crate) struct Stopped;

/// Searches `directory` for files with equal content. What cannot be read is skipped and said, never fatal. Symbolic
/// links are not followed, empty files are not looked at, and hard links of one file are one file.
pub(crate) fn search(directory: &Path, watch: &mut dyn Watch) -> Result<Found, Stopped> {
    let mut found = Found {
        directory: directory.display().to_string(),
        ..Found::default()
    };
    let mut by_len: BTreeMap<u64, Vec<Hashed>> = BTreeMap::new();
    for file in walk(directory, watch, &mut found.skipped)? {
        found.files += 1;
        by_len.entry(file.stamp.len).or_default().push(file);
    }
    // A file whose length no other has is nobody's copy and need not be read.
    by_len.retain(|_, files| files.len() > 1);
    let total = by_len.iter().map(|(len, files)| len * files.len() as u64).sum();
    let mut before = 0;
    for (len, files) in by_len {
        let mut by_hash: BTreeMap<String, Vec<Hashed>> = BTreeMap::new();
        for file in files {
            let hashed = hash(&file, &mut |read| {
                watch.read(before + read, total, &file.path);
                if watch.stopped() { Err(Stopped) } else { Ok(()) }
            })?;
            before += len;
            match hashed {
                Ok(sha256) => by_hash.entry(sha256).or_default().push(file),
                Err(error) => found.skipped.push(Skipped::new(Path::new(&file.path), error)),
            }
        }
        for (sha256, mut files) in by_hash {
            if files.len() < 2 {
                continue;
            }
            files.sort_by(|a, b| (a.stamp.modified_ns, &a.path).cmp(&(b.stamp.modified_ns, &b.path)));
            let kept = files.remove(0);
            found.groups.push(Group {
                sha256,
                len,
                kept,
                copies: files,
            });
        }
    }
    // What takes most room first.
    found
        .groups
        .sort_by_key(|group| std::cmp::Reverse(group.len * group.copies.len() as u64));
    Ok(found)
}

/// All ordinary files below `directory`, in the order of their paths.
fn walk(directory: &Path, watch: &mut dyn Watch, skipped: &mut Vec<Skipped>) -> Result<Vec<Hashed>, Stopped> {
    let mut files = Vec::new();
    let mut seen = HashSet::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) => {
                skipped.push(Skipped::new(&directory, error));
                continue;
            }
        };
        for entry in entries {
            if watch.stopped() {
                return Err(Stopped);
            }
            let (path, metadata) = match entry.and_then(|entry| Ok((entry.path(), entry.metadata()?))) {
                Ok(found) => found,
                Err(error) => {
                    skipped.push(Skipped::new(&directory, error));
                    continue;
                }
            };
            if metadata.is_dir() {
                left.push(path);
                continue;
            }
            if !metadata.is_file() || metadata.len() == 0 {
                continue;
            }
            // The list of what was found is kept as JSON, which is Unicode.
            let Some(text) = path.to_str() else {
                skipped.push(Skipped::new(&path, "its name is not Unicode"));
                continue;
            };
            match Stamp::of(&metadata) {
                Ok(stamp) => {
                    if stamp.number == 0 || seen.insert((stamp.device, stamp.number)) {
                        files.push(Hashed {
                            path: text.to_owned(),
                            stamp,
                        });
                    }
                }
                Err(error) => skipped.push(Skipped::new(&path, error)),
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// The hash of a file that is what `file` says before and after. `go_on` gets the bytes read so far.
fn hash(file: &Hashed, go_on: &mut dyn FnMut(u64) -> Result<(), Stopped>) -> Result<io::Result<String>, Stopped> {
    let changed = || io::Error::other("it changed while it was looked at");
    let mut open = match File::open(&file.path) {
        Ok(open) => open,
        Err(error) => return Ok(Err(error)),
    };
    let same = |open: &File| Ok::<_, io::Error>(Stamp::of(&open.metadata()?)? == file.stamp);
    match same(&open) {
        Ok(true) => {}
        Ok(false) => return Ok(Err(changed())),
        Err(error) => return Ok(Err(error)),
    }
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    let mut read = 0;
    loop {
        go_on(read)?;
        match open.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                hasher.update(&buffer[..n]);
                read += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Ok(Err(error)),
        }
    }
    go_on(read)?;
    Ok(match same(&open) {
        Ok(true) => Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
        Ok(false) => Err(changed()),
        Err(error) => Err(error),
    })
}

/// Removes `copy`, if it and the file that is kept are still what they were when they were hashed, and inside `root`.
pub(crate) fn remove(root: &Root, group: &Group, copy: &Hashed) -> io::Result<()> {
    unchanged(root, &group.kept).map_err(|error| {
        io::Error::other(format!(
            "the file that would be kept, `{}`, is not sure to be there: {error}",
            group.kept.path
        ))
    })?;
    unchanged(root, copy)?;
    fs::remove_file(&copy.path)
}

fn unchanged(root: &Root, file: &Hashed) -> io::Result<()> {
    let path = Path::new(&file.path);
    // A directory on the way that was replaced by a symbolic link leads elsewhere.
    if fs::canonicalize(path)? != path || !path.starts_with(root.path()) {
        return Err(io::Error::other("it is not where it was"));
    }
    if Stamp::at(path)? == file.stamp {
        Ok(())
    } else {
        Err(io::Error::other("it changed after it was hashed"))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// A directory that is gone when the test is over.
    struct Scratch(Root);

    impl Scratch {
        fn new(files: &[(&str, &str)]) -> Self {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let name = format!(
                "duplicates-{}-{}",
                std::process::id(),
                COUNT.fetch_add(1, Ordering::Relaxed)
            );
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            let scratch = Self(Root::new(&path).unwrap());
            for (name, content) in files {
                scratch.write(name, content);
            }
            scratch
        }

        fn write(&self, name: &str, content: &str) {
            let path = self.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        /// Makes a file `days` old.
        fn age(&self, name: &str, days: u64) {
            let time = std::time::SystemTime::now() - std::time::Duration::from_secs(days * 86_400);
            File::options()
                .write(true)
                .open(self.0.path().join(name))
                .unwrap()
                .set_modified(time)
                .unwrap();
        }

        fn search(&self) -> Found {
            search(self.0.path(), &mut Never).unwrap()
        }

        fn name<'a>(&self, file: &'a Hashed) -> &'a str {
            let name = Path::new(&file.path).strip_prefix(self.0.path()).unwrap();
            name.to_str().unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            fs::remove_dir_all(self.0.path()).unwrap();
        }
    }

    struct Never;

    impl Watch for Never {
        fn stopped(&self) -> bool {
            false
        }

        fn read(&mut self, _: u64, _: u64, _: &str) {}
    }

    #[test]
    fn files_with_equal_content_are_a_group_and_the_oldest_is_kept() {
        let dir = Scratch::new(&[
            ("a", "same"),
            ("b/c", "same"),
            ("b/d", "same"),
            ("e", "diff"),
            ("f", "longer"),
        ]);
        dir.age("b/c", 3);
        let found = dir.search();
        assert_eq!(found.files, 5);
        let [group] = &found.groups[..] else {
            panic!("{found:?}")
        };
        assert_eq!(dir.name(&group.kept), "b/c");
        assert_eq!(
            group.copies.iter().map(|copy| dir.name(copy)).collect::<Vec<_>>(),
            ["a", "b/d"]
        );
        assert_eq!((found.copies(), found.wasted()), (2, 8));
    }

    #[test]
    fn empty_files_are_nobodys_copies() {
        let dir = Scratch::new(&[("a", ""), ("b", "")]);
        assert_eq!(dir.search().groups, []);
    }

    #[test]
    fn what_was_found_survives_json() {
        let dir = Scratch::new(&[("a", "same"), ("b", "same")]);
        let found = dir.search();
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Found>(&text).unwrap(), found);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_no_copies() {
        let dir = Scratch::new(&[("a", "same")]);
        let elsewhere = Scratch::new(&[("x", "same")]);
        std::os::unix::fs::symlink(elsewhere.0.path(), dir.0.path().join("dir")).unwrap();
        std::os::unix::fs::symlink(dir.0.path().join("a"), dir.0.path().join("b")).unwrap();
        fs::hard_link(dir.0.path().join("a"), dir.0.path().join("c")).unwrap();
        let found = dir.search();
        assert_eq!((found.files, found.copies()), (1, 0));
    }

    #[test]
    fn a_stop_ends_the_search() {
        struct After(Cell<u32>);
        impl Watch for After {
            fn stopped(&self) -> bool {
                self.0.set(self.0.get() + 1);
                self.0.get() > 3
            }

            fn read(&mut self, _: u64, _: u64, _: &str) {}
        }
        let dir = Scratch::new(&[("a", "same"), ("b", "same")]);
        assert!(search(dir.0.path(), &mut After(Cell::new(0))).is_err());
    }

    #[test]
    fn a_copy_is_removed_and_the_kept_file_stays() {
        let dir = Scratch::new(&[("a", "same"), ("b", "same")]);
        let found = dir.search();
        let group = &found.groups[0];
        remove(&dir.0, group, &group.copies[0]).unwrap();
        assert_eq!(dir.search().files, 1);
    }

    #[test]
    fn a_copy_that_changed_is_not_removed() {
        let dir = Scratch::new(&[("a", "same"), ("b", "same")]);
        let found = dir.search();
        let group = &found.groups[0];
        // As long as before, and as old.
        let modified = fs::metadata(&group.copies[0].path).unwrap().modified().unwrap();
        fs::write(&group.copies[0].path, "news").unwrap();
        File::options()
            .write(true)
            .open(&group.copies[0].path)
            .unwrap()
            .set_modified(modified)
            .unwrap();
        if cfg!(unix) {
            assert!(remove(&dir.0, group, &group.copies[0]).is_err());
        }
        fs::write(&group.copies[0].path, "longer").unwrap();
        assert!(remove(&dir.0, group, &group.copies[0]).is_err());
        assert_eq!(dir.search().files, 2);
    }

    #[test]
    fn no_copy_is_removed_without_the_file_that_is_kept() {
        let dir = Scratch::new(&[("a", "same"), ("b", "same")]);
        let found = dir.search();
        let group = &found.groups[0];
        fs::remove_file(&group.kept.path).unwrap();
        assert!(remove(&dir.0, group, &group.copies[0]).is_err());
        assert_eq!(dir.search().files, 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_leads_elsewhere_by_now_is_not_followed() {
        let dir = Scratch::new(&[("a", "same"), ("d/b", "same")]);
        let found = dir.search();
        let group = &found.groups[0];
        fs::rename(dir.0.path().join("d"), dir.0.path().join("e")).unwrap();
        std::os::unix::fs::symlink("e", dir.0.path().join("d")).unwrap();
        assert!(remove(&dir.0, group, &group.copies[0]).is_err());
        assert_eq!(dir.search().files, 2);
    }

    #[test]
    fn only_directories_inside_the_root_are_accepted() {
        let dir = Scratch::new(&[("in/a", "x")]);
        assert!(dir.0.directory("").is_ok());
        assert!(dir.0.directory("in").is_ok());
        assert!(dir.0.directory(dir.0.path().join("in").to_str().unwrap()).is_ok());
        for outside in ["..", "in/../..", "/", "/etc", "in/../../etc/nothing"] {
            let refused = dir.0.directory(outside);
            assert!(matches!(refused, Err(Refused::Outside(_))), "{outside}: {refused:?}");
        }
        assert!(matches!(dir.0.directory("in/a"), Err(Refused::NotADirectory(_))));
        assert!(matches!(dir.0.directory("none"), Err(Refused::Io { .. })));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/", dir.0.path().join("link")).unwrap();
            assert!(matches!(dir.0.directory("link"), Err(Refused::Outside(_))));
        }
    }
}
