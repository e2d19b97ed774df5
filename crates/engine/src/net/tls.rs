//! TLS settings made ready for many connections.

use dyno_types::address::Tls;
use dyno_types::limits::SECRET_BYTES;
use dyno_types::{Endpoint, RefusalCode, Refused, bounded};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A client configuration and the name to verify.
pub struct TlsConfig {
    config: Arc<ClientConfig>,
    server_name: Option<String>,
}

impl TlsConfig {
    /// A handshake about to begin.
    pub fn begin(&self, to: &Endpoint) -> io::Result<ClientConnection> {
        let host = match (&self.server_name, to) {
            (Some(name), _) => name.clone(),
            (None, Endpoint::Tcp { host, .. }) => host.clone(),
            (None, Endpoint::Unix(_)) => "localhost".into(),
        };
        let name = ServerName::try_from(host).map_err(io::Error::other)?;
        let mut connection = ClientConnection::new(self.config.clone(), name).map_err(io::Error::other)?;
        // The engine bounds what it hands over; a partial write would only come back to it.
        connection.set_buffer_limit(None);
        Ok(connection)
    }
}

/// A file that holds no certificate, or no key.
#[derive(Debug, thiserror::Error)]
enum PemError {
    #[error(transparent)]
    Pem(#[from] pem::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("no certificate in it")]
    NoCertificate,
}

fn load<T>(path: &Path, what: &str, read: impl Fn(&Path) -> Result<T, PemError>) -> Result<T, Refused> {
    read(path).map_err(|why| {
        Refused::new(
            RefusalCode::BadFile,
            path.display().to_string(),
            format!("{what} {}: {why}", path.display()),
        )
    })
}

/// Reads certificates and keys. Every refusal names the file.
pub fn tls_config(tls: &Tls) -> Result<TlsConfig, Refused> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| Refused::new(RefusalCode::Unsupported, "tls", format!("TLS: {e}")))?;
    let builder = if tls.insecure || tls.any_name {
        let signed = match tls.insecure {
            true => None,
            false => {
                let roots = Arc::new(roots(tls)?);
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
                Some(verifier.map_err(|e| Refused::new(RefusalCode::BadFile, "ca", format!("TLS: {e}")))?)
            }
        };
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyName { signed, provider }))
    } else {
        builder.with_root_certificates(roots(tls)?)
    };
    let config = match (&tls.cert, &tls.key) {
        (Some(cert), Some(key)) => {
            let chain = load(cert, "client certificate", certificates)?;
            let key = load(key, "client key", |p| Ok(PrivateKeyDer::from_pem_slice(&pem(p)?)?))?;
            builder.with_client_auth_cert(chain, key).map_err(|e| {
                Refused::new(
                    RefusalCode::BadFile,
                    cert.display().to_string(),
                    format!("client certificate: {e}"),
                )
            })?
        }
        _ => builder.with_no_client_auth(),
    };
    Ok(TlsConfig { config: Arc::new(config), server_name: tls.server_name.clone() })
}

/// The text of a file of certificates or of a key.
fn pem(path: &Path) -> Result<Vec<u8>, PemError> {
    Ok(bounded::bytes_file(path, SECRET_BYTES)?)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let found = CertificateDer::pem_slice_iter(&pem(path)?).collect::<Result<Vec<_>, _>>()?;
    if found.is_empty() { Err(PemError::NoCertificate) } else { Ok(found) }
}

fn roots(tls: &Tls) -> Result<RootCertStore, Refused> {
    let mut roots = RootCertStore::empty();
    match &tls.ca {
        Some(path) => {
            for certificate in load(path, "CA file", certificates)? {
                roots.add(certificate).map_err(|e| {
                    Refused::new(
                        RefusalCode::BadFile,
                        path.display().to_string(),
                        format!("CA file {}: {e}", path.display()),
                    )
                })?;
            }
        }
        None => {
            let (added, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if added == 0 {
                return Err(Refused::new(
                    RefusalCode::Missing,
                    "ca",
                    "no CA certificates on this system: name one with ca=FILE",
                ));
            }
        }
    }
    Ok(roots)
}

/// Accepts a certificate of any name: one that a trusted authority has signed (`tlsAllowInvalidHostnames=true`), or any at all
/// (`insecure=true`). The server must hold its key in either case.
#[derive(Debug)]
struct AnyName {
    signed: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use rustls::CertificateError::{NotValidForName, NotValidForNameContext};
        let Some(signed) = &self.signed else { return Ok(ServerCertVerified::assertion()) };
        // The name is looked at last, once the signatures have held.
        match signed.verify_server_cert(end, chain, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
