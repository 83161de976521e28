//! SQLite's failures, by what the caller can do about them.

use std::path::Path;

use mcp_tasks_core::StoreError;
use rusqlite::{Error, ErrorCode};

/// Whether another connection is in the way, so that waiting helps.
pub(super) fn is_busy(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// The failure of an operation.
pub(super) fn store_error(error: Error) -> StoreError {
    let reason = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk, or the size the file may have, is full",
        Some(ErrorCode::ReadOnly) => "the SQLite file can only be read",
        Some(ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => {
            "there is no right to use the SQLite file"
        }
        Some(ErrorCode::TooBig) => "the record is larger than SQLite takes",
        Some(ErrorCode::NotADatabase) => "the file is no SQLite database",
        Some(ErrorCode::DatabaseCorrupt) => "the SQLite file is damaged",
        Some(ErrorCode::CannotOpen) => "the SQLite file, or its log beside it, cannot be opened",
        Some(ErrorCode::NoLargeFileSupport) => "the file system takes no file of this size",
        _ if is_busy(&error) => return busy(),
        Some(_) => {
            return StoreError::Unavailable {
                reason: "SQLite failed".to_owned(),
                source: Some(Box::new(error)),
            };
        }
        // What is not SQLite's failure but that of asking it: a column of another type, a statement it does not know.
        None => "the SQLite file is not laid out as expected",
    };
    StoreError::Refused {
        reason: reason.to_owned(),
        source: Some(match error {
            // Its text repeats the path and the words of what it is made of.
            Error::SqliteFailure(failure, _) if failure.code == ErrorCode::CannotOpen => Box::new(failure),
            error => Box::new(error),
        }),
    }
}

/// Another process kept the file to itself for the whole time there was.
pub(super) fn busy() -> StoreError {
    StoreError::Unavailable {
        reason: "another process kept the SQLite file to itself for too long".to_owned(),
        source: None,
    }
}

/// No thread answers any more, which only a bug can bring about.
pub(super) fn ended() -> StoreError {
    StoreError::Unavailable {
        reason: "the thread that works on the SQLite file has ended".to_owned(),
        source: None,
    }
}

/// Says of a failure to open which file it was.
pub(super) fn of_file(path: &Path, error: StoreError) -> StoreError {
    let named = |reason: String| format!("{}: {reason}", path.display());
    match error {
        StoreError::Refused { reason, source } => StoreError::Refused {
            reason: named(reason),
            source,
        },
        StoreError::Unavailable { reason, source } => StoreError::Unavailable {
            reason: named(reason),
            source,
        },
        other => other,
    }
}
