//! What a configuration asks of one side. Every stack has one function that says whether it can do
//! that; its constructors obey it, and the [`capabilities`](crate::capabilities) come of it.
#![cfg_attr(
    not(all(feature = "rustls", feature = "s2n-tls")),
    allow(dead_code, reason = "OpenSSL can do nearly everything")
)]

use lastbyte_link::Side;
use lastbyte_pki::{Chain, KeyAlgorithm, key_algorithm};

use crate::error::cannot;
use crate::{CertificateCompression, Delivery, Group, Resumption, StackName, TlsConfig, TlsError};

#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) side: Side,
    pub(crate) group: Group,
    pub(crate) key_shares: Vec<Group>,
    /// What the client supports, so far as it is to say so.
    pub(crate) client_groups: Vec<Group>,
    /// The other side's implementation.
    pub(crate) peer: StackName,
    /// The chains that this side proves itself with, and that it verifies.
    pub(crate) proves: Option<Material>,
    pub(crate) verifies: Option<Material>,
    pub(crate) resumption: Resumption,
    pub(crate) tickets: u8,
    pub(crate) delivery: Delivery,
    pub(crate) max_certificate_list: Option<usize>,
}

/// What matters of a chain.
#[derive(Debug, Clone)]
pub(crate) struct Material {
    /// The algorithms of all keys, the root's included, the end-entity's first. `None` is one that
    /// chains are not made with.
    pub(crate) keys: Vec<Option<KeyAlgorithm>>,
    pub(crate) certificate_message_bytes: usize,
}

impl Material {
    fn of(chain: &Chain) -> Material {
        let certificates = chain.certificates().iter().chain([chain.root()]);
        let keys = certificates.map(|certificate| {
            let key = certificate.public_key().ok()?;
            key_algorithm(&key)
        });
        Material {
            keys: keys.collect(),
            certificate_message_bytes: chain.certificate_message_bytes(),
        }
    }
}

impl Ask {
    pub(crate) fn client(config: &TlsConfig<'_>) -> Ask {
        Ask {
            side: Side::Client,
            group: config.group,
            key_shares: config.key_shares.clone(),
            client_groups: config.client_groups(),
            peer: config.server,
            proves: config.client_chain.map(Material::of),
            verifies: Some(Material::of(config.chain)),
            resumption: config.resumption,
            tickets: config.tickets,
            delivery: config.delivery.clone(),
            max_certificate_list: config.max_certificate_list,
        }
    }

    pub(crate) fn server(config: &TlsConfig<'_>) -> Ask {
        let client = Ask::client(config);
        Ask {
            side: Side::Server,
            peer: config.client,
            proves: client.verifies,
            verifies: client.proves,
            ..client
        }
    }

    /// All keys that it proves itself with or verifies.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Option<KeyAlgorithm>> {
        let materials = self.proves.iter().chain(&self.verifies);
        materials.flat_map(|material| material.keys.iter().copied())
    }

    /// What this side is to compress certificates with, the preferred first.
    pub(crate) fn compressions(&self) -> &[CertificateCompression] {
        match &self.delivery {
            Delivery::Compressed(compressions) => compressions.of(self.side),
            Delivery::Full
            | Delivery::Abridged { .. }
            | Delivery::Elided(_)
            | Delivery::MerkleTree(_)
            | Delivery::PqtlsAd(_) => &[],
        }
    }

    /// That `stack`, which can't compress certificates for that `reason`, is not asked to.
    pub(crate) fn check_compressions(
        &self,
        stack: StackName,
        reason: &str,
    ) -> Result<(), TlsError> {
        let what = match (&self.delivery, self.compressions()) {
            (Delivery::Abridged { .. }, _) => "abridge",
            (_, []) => return Ok(()),
            (_, _) => "compress",
        };
        let what = format!("{what} certificates: {reason}");
        Err(cannot(stack, what, "use stack=rustls"))
    }

    /// That `stack`, which has no custom extensions, is not asked to leave anything out.
    pub(crate) fn check_delivery(&self, stack: StackName) -> Result<(), TlsError> {
        match self.delivery {
            Delivery::Full | Delivery::Compressed(_) | Delivery::Abridged { .. } => Ok(()),
            // Whoever verifies by itself can do without.
            Delivery::MerkleTree(ref tree) => match (stack, &tree.sides().named) {
                (StackName::Rustls, None) => Ok(()),
                (StackName::Rustls, Some(_)) => Err(cannot(
                    stack,
                    "name trust anchors: it has no custom extensions",
                    "add hello=nothing, or use stack=openssl",
                )),
                _ => Err(cannot(
                    stack,
                    "verify Merkle Tree Certificates: it has no hook for that",
                    "use stack=openssl",
                )),
            },
            Delivery::Elided(_) => Err(cannot(
                stack,
                "leave out intermediates that the client has: it has no custom extensions",
                "use stack=openssl",
            )),
            Delivery::PqtlsAd(_) => Err(cannot(
                stack,
                "leave out what DNS delivers: it has no custom extensions",
                "use stack=openssl",
            )),
        }
    }

    /// That every key is of an algorithm that `stack` knows.
    pub(crate) fn check_keys(
        &self,
        stack: StackName,
        supported: &[KeyAlgorithm],
    ) -> Result<(), TlsError> {
        for key in self.keys() {
            if !key.is_some_and(|key| supported.contains(&key)) {
                let key = key.map_or("such", KeyAlgorithm::name);
                return Err(cannot(
                    stack,
                    format!("use {key} keys"),
                    "choose another key algorithm or stack",
                ));
            }
        }
        Ok(())
    }

    /// That `stack`, which takes Certificate messages of up to `limit` bytes and can't be known
    /// otherwise, is asked for nothing else.
    pub(crate) fn check_certificate_list(
        &self,
        stack: StackName,
        limit: usize,
    ) -> Result<(), TlsError> {
        let Some(chain) = &self.verifies else {
            return Ok(());
        };
        if self.max_certificate_list.is_some() {
            let what = "be told how large a certificate list to take";
            return Err(cannot(
                stack,
                what,
                format!("its own limit is {limit} bytes"),
            ));
        }
        match chain.certificate_message_bytes {
            bytes if bytes > limit => Err(cannot(
                stack,
                format!("take a Certificate message of {bytes} bytes"),
                format!("its own limit is {limit} bytes"),
            )),
            _ => Ok(()),
        }
    }
}
