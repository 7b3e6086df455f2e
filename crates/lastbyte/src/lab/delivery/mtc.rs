//! Merkle Tree Certificates: an arm's CA, its log and its cosigners, and what clients know of them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lastbyte_mtc::openssl::SigningKey;
use lastbyte_mtc::{
    Cosigner, Group, RelyingParty, Sample, TrustAnchorId, TrustedAuthority, UnixTime,
};
use lastbyte_pki::Chain;
use lastbyte_tls as tls;
use lastbyte_tls::merkle_tree::{Certified, MerkleTree, Sides};

use super::{Mechanism, to_line};
use crate::study::Mtc;

/// Certificates are valid for so long already when a client gets them.
const DATED_BACK: Duration = Duration::from_secs(60);

impl Mechanism for Mtc {
    fn bare(&self) -> Result<tls::Delivery, String> {
        Ok(tls::Delivery::MerkleTree(MerkleTree::new(Sides {
            certificates: Vec::new(),
            named: self.named()?,
            trusted: Vec::new(),
            relying_party: RelyingParty::new(),
            now: UnixTime(0),
        })))
    }

    fn configure(&self, chain: &Chain) -> Result<tls::Delivery, String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = UnixTime(now.map_or(0, |since| since.as_secs()));
        let key = chain.key().public_key_to_der().map_err(to_line)?;
        let names = names(chain);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        // OpenSSL's clock has whole ticks, and can be behind ours when a second has just begun.
        let issued = UnixTime(now.0.saturating_sub(DATED_BACK.as_secs()));
        let sample = self.sample(&names, &key, issued)?;
        let mut keys = Vec::new();
        for (id, algorithm) in self.cosigners.all()? {
            keys.push(SigningKey::generate(id, algorithm).map_err(to_line)?);
        }
        let cosigners: Vec<Steady<'_>> = keys.iter().map(Steady).collect();
        let cosigners: Vec<&dyn Cosigner> =
            cosigners.iter().map(|cosigner| cosigner as _).collect();
        let paths = self.paths(&sample, &cosigners)?;
        let mut certificates = Vec::new();
        for path in paths {
            certificates.push(Certified {
                id: path.id,
                properties: path.properties,
                certificate: path.certificate,
            });
        }
        Ok(tls::Delivery::MerkleTree(MerkleTree::new(Sides {
            certificates,
            named: self.named()?,
            trusted: self.trusted()?,
            relying_party: relying_party(self, &sample, &keys)?,
            now,
        })))
    }
}

/// Those that the end-entity's certificate has.
fn names(chain: &Chain) -> Vec<String> {
    let end_entity = chain.certificates().first();
    let names = end_entity.and_then(|end_entity| end_entity.subject_alt_names());
    let names = names.into_iter().flatten();
    names
        .filter_map(|name| name.dnsname().map(str::to_owned))
        .collect()
}

/// Clients that know all cosigners, ask for each of them, and have landmarks up to the last that
/// they hold.
fn relying_party(mtc: &Mtc, sample: &Sample, keys: &[SigningKey]) -> Result<RelyingParty, String> {
    let log = sample.log();
    let mut authority = TrustedAuthority::new(log.ca().clone());
    for key in keys {
        authority.cosigner(key.id().clone(), Box::new(key.checker().map_err(to_line)?));
    }
    authority.require(Group::all(keys.iter().map(|key| key.id().clone())));
    if let crate::study::Form::Landmark = mtc.form {
        for landmark in sample.landmarks().all() {
            if !(1..=mtc.last_held()).contains(&landmark.number) {
                continue;
            }
            for (subtree, hash) in sample.landmark_subtrees(landmark.number).map_err(to_line)? {
                authority.trust(log.number(), subtree, hash);
            }
        }
    }
    let mut client = RelyingParty::new();
    client.trust(authority);
    Ok(client)
}

/// Signs until the signature has its algorithm's likeliest length, so that what is on the wire is
/// the same wherever it is measured.
struct Steady<'a>(&'a SigningKey);

impl Cosigner for Steady<'_> {
    fn id(&self) -> &TrustAnchorId {
        self.0.id()
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, lastbyte_mtc::cosign::SignError> {
        const TRIES: usize = 1000;
        let likeliest = Mtc::signature_bytes(self.0.algorithm());
        let mut signature = self.0.sign(message)?;
        for _ in 0..TRIES {
            if signature.len() == likeliest {
                break;
            }
            signature = self.0.sign(message)?;
        }
        Ok(signature)
    }
}
