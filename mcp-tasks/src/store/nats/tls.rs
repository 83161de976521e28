//! What TLS connections trust and show.

use std::path::Path;
use std::sync::Arc;

use async_nats::rustls::crypto::ring;
use async_nats::rustls::pki_types::pem::PemObject;
use async_nats::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use async_nats::rustls::{ClientConfig, RootCertStore};
use mcp_tasks_core::StoreError;

use super::error::refused;
use super::options::NatsOptions;

/// Reads the files. The provider of the cryptography is named, as a process with two of them has no default.
///
/// Blocks for as long as files take.
pub(super) fn config(options: &NatsOptions) -> Result<ClientConfig, StoreError> {
    let mut roots = RootCertStore::empty();
    match &options.authority {
        Some(path) => {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| of_file(path, error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(format!("TLS cannot be used: {error}")))?
        .with_root_certificates(roots);
    match &options.certificate {
        Some((certificate, key)) => {
            let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| of_file(key, error))?;
            config
                .with_client_auth_cert(certificates(certificate)?, secret)
                .map_err(|error| of_file(certificate, error))
        }
        None => Ok(config.with_no_client_auth()),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .map_err(|error| of_file(path, error))?
        .collect();
    let found = found.map_err(|error| of_file(path, error))?;
    if found.is_empty() {
        return Err(of_file(path, "it has no certificate"));
    }
    Ok(found)
}

fn of_file(path: &Path, error: impl std::fmt::Display) -> StoreError {
    refused(format!("the TLS file {} cannot be used: {error}", path.display()))
}
