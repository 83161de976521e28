//! PostgreSQL's failures, by what the caller can do about them.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use deadpool_postgres::{HookError, PoolError};
use mcp_tasks_core::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::store::failure::{late, refused};

/// Whether the connection is of no use any more, so that another one may do what it could not.
pub(super) fn is_broken(error: &Error) -> bool {
    let Some(code) = error.code() else {
        // Not the server's word: the line was cut, or what came over it was no answer.
        return true;
    };
    let ended = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::IDLE_SESSION_TIMEOUT,
        // A server that became a standby, and a statement that was prepared on another connection of a proxy.
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::INVALID_SQL_STATEMENT_NAME,
    ];
    ended.contains(code) || code.code().starts_with("08")
}

/// Whether the statement did nothing because others did something at the same time, so that it may well do it now. At the level
/// `read committed` no statement of the store ends so; where another is the default, as a setting of the database or the
/// user, a conflict does.
pub(super) fn is_collision(error: &Error) -> bool {
    let collisions = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
    error.code().is_some_and(|code| collisions.contains(code))
}

/// The failure of a statement, or of a connection that could not be made.
pub(super) fn store_error(error: Error) -> StoreError {
    let (is_final, reason) = match error.code() {
        Some(code) => of_state(code),
        None => of_connection(&error),
    };
    let (reason, source) = (reason.to_owned(), Some(error.into()));
    if is_final {
        StoreError::Refused { reason, source }
    } else {
        StoreError::Unavailable { reason, source }
    }
}

/// Whether the server would say so again, and what that means.
fn of_state(code: &SqlState) -> (bool, &'static str) {
    let by_code = [
        (
            SqlState::INSUFFICIENT_PRIVILEGE,
            "the PostgreSQL user has no right to do this; let a user who may create the tables once, and grant this one \
             SELECT, INSERT, UPDATE and DELETE on them",
        ),
        (SqlState::DISK_FULL, "the disk of the PostgreSQL server is full"),
        (
            SqlState::INVALID_CATALOG_NAME,
            "the PostgreSQL server has no such database",
        ),
        (
            SqlState::UNTRANSLATABLE_CHARACTER,
            "the PostgreSQL database cannot hold the record's characters; it has to have the encoding UTF8",
        ),
    ];
    if let Some((_, reason)) = by_code.into_iter().find(|(known, _)| known == code) {
        return (true, reason);
    }
    match &code.code()[..2] {
        "28" => (true, "the PostgreSQL server does not accept the user or the password"),
        "42" | "3F" | "0A" => (true, "the PostgreSQL tables are not laid out as expected"),
        "22" | "23" | "54" => (true, "PostgreSQL does not take the record"),
        "XX" if code != &SqlState::INTERNAL_ERROR => (true, "the PostgreSQL data is damaged"),
        "57" => (false, "the PostgreSQL server stops, starts, or cancelled the statement"),
        "53" => (false, "the PostgreSQL server has no room for more connections or work"),
        "25" => (false, "the PostgreSQL server only reads at present, as a standby does"),
        _ => (false, "PostgreSQL failed"),
    }
}

fn of_connection(error: &Error) -> (bool, &'static str) {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(error) = inner.downcast_ref::<io::Error>()
            && let Some(source) = error.get_ref()
            && source.is::<rustls::Error>()
        {
            return (true, "the TLS connection to the PostgreSQL server is not accepted");
        }
        cause = inner.source();
    }
    // The driver does not tell these kinds apart but by their words.
    match error.to_string().as_str() {
        "error performing TLS handshake" if !is_cut(error) => {
            (true, "a TLS connection to the PostgreSQL server is not possible")
        }
        "authentication error" | "invalid configuration" => {
            (true, "the connection to the PostgreSQL server is not set up as it asks")
        }
        "error connecting to server" => (false, "no connection to the PostgreSQL server"),
        _ => (false, "the connection to the PostgreSQL server was lost"),
    }
}

/// Whether the line went dead, which says nothing about what was spoken over it.
fn is_cut(error: &Error) -> bool {
    error.source().is_some_and(|source| source.is::<io::Error>())
}

/// No connection could be had.
pub(super) fn pool_error(error: PoolError) -> StoreError {
    match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => store_error(error),
        PoolError::Closed => refused("the pool of PostgreSQL connections was closed"),
        PoolError::NoRuntimeSpecified => {
            refused("the pool of PostgreSQL connections has time-outs and no runtime; give it one")
        }
        other => StoreError::Unavailable {
            reason: "the pool gave no connection to the PostgreSQL server".to_owned(),
            source: Some(other.into()),
        },
    }
}

/// The time an operation may take is over.
pub(super) fn too_late(timeout: Duration) -> StoreError {
    late("the PostgreSQL server", timeout)
}
