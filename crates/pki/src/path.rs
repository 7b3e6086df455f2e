//! Which certificates lead from the end-entity up, among those that were sent.

use openssl::x509::{X509, X509Ref, X509VerifyResult};

/// Whether a certificate names another one as its issuer.
pub(crate) fn issued(issuer: &X509Ref, subject: &X509Ref) -> bool {
    match issuer.issued(subject) {
        X509VerifyResult::OK => true,
        // Where it can't read a key, OpenSSL says no, as it can't tell what that signs.
        _ if issuer.public_key().is_err() => {
            let names = issuer.subject_name().try_cmp(subject.issuer_name());
            names.is_ok_and(|names| names.is_eq())
        }
        _ => false,
    }
}

/// The issuer of the certificate at `subject` among the others that are not `taken`: the next one, if it is that.
pub(crate) fn issuer_of(sent: &[X509], subject: usize, taken: &[usize]) -> Option<usize> {
    let certificate = sent.get(subject)?;
    let others = (subject + 1..sent.len()).chain(0..subject);
    let mut others = others.filter(|other| !taken.contains(other));
    others.find(|other| {
        sent.get(*other)
            .is_some_and(|issuer| issuer != certificate && issued(issuer, certificate))
    })
}

/// The certificates that lead up from the one at `leaf`, itself first.
pub(crate) fn path_from(sent: &[X509], leaf: usize) -> Vec<usize> {
    let mut path = vec![leaf];
    while let Some(issuer) = path.last().and_then(|last| issuer_of(sent, *last, &path)) {
        path.push(issuer);
    }
    path
}

/// The uppermost certificate that leads down to the first one.
pub(crate) fn top(sent: &[X509]) -> Option<&X509> {
    sent.get(*path_from(sent, 0).last()?)
}
