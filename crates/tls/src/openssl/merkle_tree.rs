//! Merkle Tree Certificates on OpenSSL, which can't verify them: a callback does.

use std::sync::{Arc, OnceLock};

use lastbyte_pki::Chain;
use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::ssl::{Ssl, SslContextBuilder, SslMode, SslVerifyMode};
use openssl::x509::store::X509StoreBuilder;
use openssl::x509::{X509, X509StoreContext, X509StoreContextRef, X509VerifyResult};
use openssl_sys as sys;

use super::credentials::{Credentials, index};
use super::trust_anchors::{self, Path, Paths};
use crate::merkle_tree::MerkleTree;

/// Has a server send its certificates. Gives what each of its connections sends until its client
/// has sent something.
pub(super) fn install_server(
    context: &mut SslContextBuilder,
    chain: &Chain,
    tree: &MerkleTree,
) -> Result<Arc<Credentials>, ErrorStack> {
    context.set_mode(SslMode::NO_AUTO_CHAIN);
    // At any other level OpenSSL refuses to send a certificate whose signature's algorithm it does
    // not know.
    context.set_security_level(0);
    let credentials = |certificates: Vec<X509>| Credentials {
        certificates,
        key: chain.key().clone(),
    };
    let mut anchored = Vec::new();
    for (place, certified) in tree.sides().certificates.iter().enumerate() {
        let certificate = X509::from_der(&certified.certificate)?;
        let tree = tree.clone();
        anchored.push(Path {
            id: certified.id.clone(),
            answers: Box::new(move |named| {
                let certificates = &tree.sides().certificates;
                certificates
                    .get(place)
                    .is_some_and(|certified| certified.answers(named))
            }),
            credentials: Arc::new(credentials(vec![certificate])),
        });
    }
    let preferred = anchored.first().map(|path| path.credentials.clone());
    let whole = Arc::new(credentials(chain.certificates().to_vec()));
    match (&tree.sides().named, preferred) {
        (None, Some(preferred)) => Ok(preferred),
        _ => {
            let fallback = whole.clone();
            trust_anchors::install_server(context, Arc::new(Paths { anchored, fallback }))?;
            Ok(whole)
        }
    }
}

/// What the callback has found of a connection's certificate: OpenSSL calls it for each of its own
/// complaints.
static ACCEPTED: OnceLock<Index<Ssl, OnceLock<bool>>> = OnceLock::new();

/// Has clients accept what `tree` has them accept, and nothing else.
pub(super) fn install_client(
    context: &mut SslContextBuilder,
    host: &str,
    tree: &MerkleTree,
) -> Result<(), ErrorStack> {
    // No root: whoever sends a chain of X.509 is refused.
    context.set_cert_store(X509StoreBuilder::new()?.build());
    let (tree, host) = (tree.clone(), host.to_owned());
    let accepted = index(&ACCEPTED)?;
    let ssl = X509StoreContext::ssl_idx()?;
    context.set_verify_callback(SslVerifyMode::PEER, move |is_good, complaint| {
        if is_good {
            return true;
        }
        if !is_of_proof(complaint.error()) || complaint.error_depth() != 0 {
            return false;
        }
        let decision = (complaint.ex_data(ssl)).and_then(|ssl| ssl.ex_data(accepted));
        let found = || accepts(&tree, complaint, &host);
        let is_accepted = decision.map_or_else(found, |decision| *decision.get_or_init(found));
        if is_accepted {
            complaint.set_error(X509VerifyResult::OK);
        }
        is_accepted
    });
    Ok(())
}

/// Prepares a connection.
pub(super) fn begin(ssl: &mut openssl::ssl::SslRef) -> Result<(), ErrorStack> {
    ssl.set_ex_data(index(&ACCEPTED)?, OnceLock::new());
    Ok(())
}

fn accepts(tree: &MerkleTree, complaint: &X509StoreContextRef, host: &str) -> bool {
    let certificate = complaint.current_cert();
    let der = certificate.and_then(|certificate| certificate.to_der().ok());
    der.is_some_and(|der| tree.accepts(&der, host))
}

/// Whether it is about who signed the certificate, and with what, which the proof answers.
fn is_of_proof(complaint: X509VerifyResult) -> bool {
    [
        sys::X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
        sys::X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
        sys::X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
        sys::X509_V_ERR_CERT_UNTRUSTED,
        sys::X509_V_ERR_CA_MD_TOO_WEAK,
    ]
    .contains(&complaint.as_raw())
}
