//! NATS's failures, by what the caller can do about them.

use std::error::Error as StdError;
use std::time::Duration;

use async_nats::ConnectErrorKind;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::{self, ErrorCode};
use mcp_tasks_core::StoreError;

use crate::store::failure;
pub(super) use crate::store::failure::refused;

type Source = Box<dyn StdError + Send + Sync>;

pub(super) fn unavailable(reason: impl Into<String>, source: impl Into<Source>) -> StoreError {
    StoreError::Unavailable {
        reason: reason.into(),
        source: Some(source.into()),
    }
}

pub(super) fn late(timeout: Duration) -> StoreError {
    failure::late("the NATS server", timeout)
}

/// What is the matter with JetStream as a whole: nobody answers on its subjects.
pub(super) fn nobody_answers(source: impl Into<Source>) -> StoreError {
    unavailable("no JetStream server answers", source)
}

/// A failure to connect. The addresses that are handed to the driver hold no password, so neither does its error.
pub(super) fn of_connecting(error: async_nats::ConnectError) -> StoreError {
    let reason = match error.kind() {
        ConnectErrorKind::AuthorizationViolation => {
            "the NATS server refuses the user, the password, the token or the credentials"
        }
        ConnectErrorKind::Authentication => "the NATS credentials cannot be used",
        ConnectErrorKind::ServerParse => "the address of the NATS server cannot be used",
        ConnectErrorKind::Tls => "the TLS connection to the NATS server fails; see `tlsca`, `tlscert` and `tlskey`",
        _ if is_certificate(&error) => {
            "the certificate of the NATS server is not trusted; name the authority's file as `tlsca`"
        }
        _ => return unavailable("no connection to the NATS server", error),
    };
    StoreError::Refused {
        reason: reason.to_owned(),
        source: Some(Box::new(error)),
    }
}

/// The driver hands TLS failures on as those of input and output.
fn is_certificate(error: &(dyn StdError + 'static)) -> bool {
    use async_nats::rustls::Error;
    let mut next = Some(error);
    while let Some(error) = next {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let inner = inner.and_then(|inner| inner.downcast_ref::<Error>());
        if let Some(Error::InvalidCertificate(_)) = error.downcast_ref::<Error>().or(inner) {
            return true;
        }
        next = error.source();
    }
    false
}

/// An error that JetStream answered with.
pub(super) fn of_jetstream(error: &jetstream::Error) -> StoreError {
    let reason = match error.error_code() {
        ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM => "the record is larger than the bucket takes",
        ErrorCode::STREAM_STORE_FAILED => "the bucket or the disk is full",
        ErrorCode::STORAGE_RESOURCES_EXCEEDED
        | ErrorCode::INSUFFICIENT_RESOURCES
        | ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
        | ErrorCode::MEMORY_RESOURCES_EXCEEDED
        | ErrorCode::STREAM_MAX_STREAM_BYTES_EXCEEDED => "JetStream has not enough storage",
        ErrorCode::STREAM_MAX_BYTES_REQUIRED => "the account wants a limit for every bucket; give one as `max-bytes`",
        ErrorCode::JETSTREAM_NOT_ENABLED | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT | ErrorCode::NO_ACCOUNT => {
            "JetStream is not enabled for this account"
        }
        ErrorCode::STREAM_NOT_FOUND => {
            return unavailable("the NATS bucket is gone", error.clone());
        }
        ErrorCode::STREAM_EXPECTED_LAST_SEQ_PER_SUBJECT_NOT_READY | ErrorCode::STREAM_TOO_MANY_REQUESTS => {
            return unavailable("JetStream is busy", error.clone());
        }
        // Of the HTTP-like classes the fourth is the request's fault, and the fifth passes.
        _ if error.code() < 500 => "JetStream refuses the request",
        _ => return unavailable("JetStream fails", error.clone()),
    };
    StoreError::Refused {
        reason: reason.to_owned(),
        source: Some(Box::new(error.clone())),
    }
}

/// The JetStream error that an error of the driver wraps.
pub(super) fn jetstream_cause<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a jetstream::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<jetstream::Error>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// What became of a conditional write that failed.
pub(super) enum WriteFailure {
    /// Something else is there.
    Conflict,
    /// Nobody took it: it was not written.
    Nobody(StoreError),
    Failed(StoreError),
}

pub(super) fn of_publishing(error: PublishError) -> WriteFailure {
    let cause = jetstream_cause(&error);
    if error.kind() == PublishErrorKind::WrongLastSequence
        || cause.is_some_and(|cause| cause.error_code() == ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT)
    {
        return WriteFailure::Conflict;
    }
    if error.kind() == PublishErrorKind::StreamNotFound {
        return WriteFailure::Nobody(nobody_answers(error));
    }
    WriteFailure::Failed(match (cause, error.kind()) {
        (Some(cause), _) => of_jetstream(cause),
        (None, PublishErrorKind::MaxPayloadExceeded) => StoreError::Refused {
            reason: "the record is larger than a message of this NATS server may be (`max_payload`)".to_owned(),
            source: Some(Box::new(error)),
        },
        _ => unavailable("the NATS server did not confirm a write", error),
    })
}

/// Any other failure of the driver.
pub(super) fn of_request(error: impl StdError + Send + Sync + 'static) -> StoreError {
    match jetstream_cause(&error) {
        Some(cause) => of_jetstream(cause),
        None => unavailable("the NATS server did not answer", error),
    }
}
