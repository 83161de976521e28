//! TLS, with the modes and the meaning that libpq gave them.

use std::path::Path;
use std::sync::Arc;

use mcp_tasks_core::StoreError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::options::{Roots, Verify};

/// What TLS connections are made with.
pub(super) fn connector(verify: Verify, roots: Option<&Roots>) -> Result<MakeRustlsConnect, StoreError> {
    // Handed over rather than installed: which provider the process uses is the application's to say.
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let verifier: Arc<dyn ServerCertVerifier> = match verify {
        Verify::Nothing => Arc::new(Lenient { provider, chain: None }),
        Verify::Chain | Verify::Full => {
            let roots = Arc::new(trusted(roots)?);
            let strict = WebPkiServerVerifier::builder_with_provider(roots, provider.clone())
                .build()
                .map_err(unusable)?;
            match verify {
                Verify::Full => strict,
                _ => Arc::new(Lenient {
                    provider,
                    chain: Some(strict),
                }),
            }
        }
    };
    let config = builder
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Refused {
        reason: "TLS to the PostgreSQL server cannot be set up".to_owned(),
        source: Some(Box::new(error)),
    }
}

fn trusted(roots: Option<&Roots>) -> Result<RootCertStore, StoreError> {
    let mut store = RootCertStore::empty();
    match roots {
        Some(Roots::File(path)) => {
            for certificate in read(path)? {
                store.add(certificate).map_err(|error| of_file(path, error))?;
            }
        }
        Some(Roots::System) | None => {
            let found = rustls_native_certs::load_native_certs();
            store.add_parsable_certificates(found.certs);
        }
    }
    if store.is_empty() {
        let place = match roots {
            Some(Roots::File(path)) => format!("`sslrootcert` ({})", path.display()),
            _ => "the operating system".to_owned(),
        };
        return Err(StoreError::Refused {
            reason: format!("{place} has no certificate to verify the PostgreSQL server by"),
            source: None,
        });
    }
    Ok(store)
}

fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| of_file(path, error))
}

fn of_file(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Refused {
        reason: format!("`sslrootcert` ({}) cannot be used", path.display()),
        source: Some(Box::new(error)),
    }
}

/// Looks at less than everything: at nothing, or at who signed the certificate and not at the name in it.
#[derive(Debug)]
struct Lenient {
    provider: Arc<CryptoProvider>,
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        // The name is what it looks at last, so that this complaint means that all else is well.
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
