//! Redis's failures, by what the caller can do about them.

use std::error::Error;
use std::io;
use std::sync::Arc;

use mcp_tasks_core::StoreError;
use redis::{ErrorKind, RedisError};

/// What servers call the failures that are told apart here.
const CODES: [&str; 16] = [
    "OOM",
    "MISCONF",
    "NOAUTH",
    "WRONGPASS",
    "NOPERM",
    "WRONGTYPE",
    "READONLY",
    "LOADING",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "BUSY",
    "NOREPLICAS",
    "MOVED",
    "ASK",
    "CROSSSLOT",
];

/// The server's word for a failure. Servers before Redis 7 wrap what a script meets into a general error, with the word
/// inside.
pub(super) fn code(error: &RedisError) -> Option<&str> {
    let code = error.code()?;
    let detail = error.detail().unwrap_or_default();
    if code == "ERR" && detail.contains("@user_script") {
        let inside = CODES.into_iter().find(|code| detail.contains(&format!("-{code} ")));
        return inside.or(Some(code));
    }
    Some(code)
}

/// The failure of an operation. Neither what redis-rs nor what a server says contains a password.
pub(super) fn store_error(error: RedisError) -> StoreError {
    let retryable = |reason: &str| (true, reason.to_owned());
    let final_ = |reason: &str| (false, reason.to_owned());
    let (is_retryable, reason) = match code(&error) {
        Some("OOM") => final_("the Redis server's memory, as limited by its `maxmemory`, is full"),
        Some("MISCONF") => final_("the Redis server takes no writes because it cannot save to its disk"),
        Some("NOAUTH") => final_(NO_PASSWORD),
        Some("WRONGPASS") => final_(WRONG_PASSWORD),
        Some("NOPERM") => final_("the Redis user has no right to do what the task store needs"),
        Some("WRONGTYPE") => final_("a key of the task store holds something else"),
        Some("MOVED" | "ASK" | "CROSSSLOT") => {
            final_("the Redis server is part of a cluster; write `redis-cluster://` instead of `redis://`")
        }
        Some("READONLY") => retryable("the Redis server is a replica, or became one"),
        Some("LOADING") => retryable("the Redis server is still loading its data"),
        Some("MASTERDOWN") => retryable("the Redis replica has lost its primary"),
        Some("CLUSTERDOWN" | "TRYAGAIN") => retryable("the Redis cluster does not serve all slots at the moment"),
        Some("BUSY") => retryable("the Redis server is busy with a script that does not end"),
        Some("NOREPLICAS") => retryable("the Redis server has fewer replicas than it is told to write to"),
        _ => of_kind(&error),
    };
    let source = Some(Box::new(error) as Box<dyn Error + Send + Sync>);
    if is_retryable {
        StoreError::Unavailable { reason, source }
    } else {
        StoreError::Refused { reason, source }
    }
}

const NO_PASSWORD: &str = "the Redis server wants a password, and none is configured";
const WRONG_PASSWORD: &str = "the Redis server refuses the user or the password";

/// By what the driver makes of it: whether it may pass, and in words.
fn of_kind(error: &RedisError) -> (bool, String) {
    let detail = error.detail().unwrap_or_default();
    match error.kind() {
        ErrorKind::AuthenticationFailed => (false, WRONG_PASSWORD.to_owned()),
        ErrorKind::InvalidClientConfig => (false, "the connection to Redis cannot be made as configured".to_owned()),
        // The server reads no long command of somebody who has not said who they are.
        ErrorKind::Server(_) | ErrorKind::Extension if detail.contains("unauthenticated") => {
            (false, NO_PASSWORD.to_owned())
        }
        ErrorKind::RESP3NotSupported => (false, "the Redis server does not speak RESP3".to_owned()),
        ErrorKind::Io if is_untrusted(error) => (
            false,
            "the TLS connection to the Redis server is not trusted: look at its certificate, and at the system's \
             certificates (or those in `SSL_CERT_FILE`)"
                .to_owned(),
        ),
        ErrorKind::Io => (true, "the connection to the Redis server fails".to_owned()),
        ErrorKind::Server(_) | ErrorKind::Extension if detail.contains("unknown command") => {
            (false, "the server lacks a command that the task store needs".to_owned())
        }
        ErrorKind::Server(_) if error.to_string().contains("switch database") => {
            (false, "the Redis server does not have the database".to_owned())
        }
        _ => (true, "Redis failed".to_owned()),
    }
}

/// Whether the other side could not prove who it is, which the driver reports as a failure to read.
fn is_untrusted(error: &RedisError) -> bool {
    let mut next = error.source();
    while let Some(source) = next {
        let io = source.downcast_ref::<io::Error>().or_else(|| {
            source
                .downcast_ref::<Arc<dyn Error + Send + Sync>>()?
                .downcast_ref::<io::Error>()
        });
        let inner = io.and_then(io::Error::get_ref);
        if inner.is_some_and(|inner| matches!(inner.downcast_ref(), Some(rustls::Error::InvalidCertificate(_)))) {
            return true;
        }
        next = source.source();
    }
    false
}

/// Whether the connection is of no use any more: dead, or to a server that no longer takes writes.
pub(super) fn spoils_connection(error: &RedisError) -> bool {
    error.is_io_error() || error.is_unrecoverable_error() || code(error) == Some("READONLY")
}

/// Whether the connection turned out to be dead, so that the next one may do better at once.
pub(super) fn was_dropped(error: &RedisError) -> bool {
    error.is_connection_dropped()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(code: &str, detail: &str) -> RedisError {
        match code {
            "ERR" => (
                redis::ServerErrorKind::ResponseError.into(),
                "An error of the server",
                detail.to_owned(),
            )
                .into(),
            _ => redis::make_extension_error(code.to_owned(), Some(detail.to_owned())),
        }
    }

    #[test]
    fn what_a_retry_cannot_help_is_refused() {
        for (code, detail, retryable) in [
            ("OOM", "command not allowed when used memory > 'maxmemory'.", false),
            (
                "ERR",
                "Error running script (call to f_1): @user_script:9: @user_script: 9: -OOM command not allowed",
                false,
            ),
            (
                "ERR",
                "Error running script (call to f_1): @user_script:9: -READONLY You can't write",
                true,
            ),
            ("NOAUTH", "Authentication required.", false),
            (
                "WRONGPASS",
                "invalid username-password pair or user is disabled.",
                false,
            ),
            (
                "NOPERM",
                "this user has no permissions to run the 'evalsha' command",
                false,
            ),
            ("MISCONF", "Redis is configured to save RDB snapshots", false),
            ("MOVED", "3999 127.0.0.1:6381", false),
            ("READONLY", "You can't write against a read only replica.", true),
            ("LOADING", "Redis is loading the dataset in memory", true),
            ("MASTERDOWN", "Link with MASTER is down", true),
            ("CLUSTERDOWN", "The cluster is down", true),
            ("NOREPLICAS", "Not enough good replicas to write.", true),
            ("BUSY", "Redis is busy running a script.", true),
            ("ERR", "max number of clients reached", true),
            ("ERR", "Protocol error: unauthenticated multibulk length", false),
            ("ERR", "unknown command 'EVALSHA', with args beginning with: ", false),
        ] {
            let error = store_error(server(code, detail));
            assert_eq!(error.is_retryable(), retryable, "{code} {detail}: {error}");
        }
        let refused: RedisError = (ErrorKind::AuthenticationFailed, "Password authentication failed").into();
        assert!(!store_error(refused).is_retryable());
        let dropped: RedisError = io::Error::from(io::ErrorKind::ConnectionReset).into();
        assert!(store_error(dropped).is_retryable());
    }
}
