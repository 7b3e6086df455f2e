//! How an arm is written: `GROUP/CHAIN[:BYTESB][/KEY=VALUE...]`.
//!
//! An arm is a value: what its keys say is in its fields, and what was said of them, in which order and in which words, is in
//! [`Settings`]. Its label is made of that, and nothing reads it again.

mod chain;
mod error;
mod key;
mod settings;

use std::fmt;
use std::str::FromStr;

use lastbyte_link::{Probability, is_hidden};
use lastbyte_sizes::{ChainSpec, Group, PemFiles, Resumption, StackName};

use self::chain::{chain_in_usual_letters, group_in_usual_letters, parse_chain};
pub use self::error::{ArmError, ArmProblem};
pub(crate) use self::key::chain_as_written;
pub use self::key::{Key, MOST_TICKETS};
pub use self::settings::{NoKeys, Settings};
use super::{Arm, ArmChain, Sessions, TransportName};

impl FromStr for Arm {
    type Err = ArmError;

    fn from_str(text: &str) -> Result<Arm, ArmError> {
        let (group, chain) = text.split_once('/').unwrap_or((text, ""));
        let parsed = check_visible(text).and_then(|()| {
            let group = group_in_usual_letters(group);
            let group = group.parse().map_err(ArmProblem::Group)?;
            parse(group, chain)
        });
        parsed.map_err(|problem| ArmError {
            arm: text.to_owned(),
            problem,
        })
    }
}

fn check_visible(text: &str) -> Result<(), ArmProblem> {
    match text.chars().find(|c| is_hidden(*c)) {
        Some(character) => Err(ArmProblem::Hidden(character)),
        None => Ok(()),
    }
}

/// An arm of a group, from what stands behind it.
fn parse(group: Group, text: &str) -> Result<Arm, ArmProblem> {
    let settings: Settings = text.parse()?;
    if settings.chain.is_empty() {
        return Err(ArmProblem::NoChain);
    }
    let chain = parse_chain(&settings.chain)?;
    made(group, chain, settings, |_, text| text.to_owned())
}

/// The arm of a group and a chain, with what is said of the rest. Some other has the values, if their texts don't.
fn made(
    group: Group,
    chain: ArmChain,
    settings: Settings,
    value: impl Fn(Key, &str) -> String,
) -> Result<Arm, ArmProblem> {
    let mut arm = Arm::bare(group, chain);
    for is_subject in [true, false] {
        for (key, text) in settings
            .keys
            .iter()
            .filter(|(key, _)| key.is_subject() == is_subject)
        {
            key.set(&mut arm, &value(*key, text))?;
        }
    }
    // The client's is the server's unless it has a key of its own.
    if !settings.says("client_stack") {
        arm.client_stack = arm.server_stack;
    }
    arm.settings = settings;
    arm.check()?;
    arm.label = arm.written();
    arm.name.clone_from(&arm.label);
    Ok(arm)
}

impl Arm {
    /// One of a group and a chain, with all else as usual. It says what the chain has.
    ///
    /// # Errors
    ///
    /// Why there can be no such chain.
    pub fn of(group: Group, chain: ArmChain) -> Result<Arm, ArmProblem> {
        Arm::of_settings(group, chain, &Settings::default())
    }

    /// The same with all that somebody says besides, none of which need be possible without the others.
    ///
    /// # Errors
    ///
    /// Why it can't have these.
    pub fn of_settings(
        group: Group,
        chain: ArmChain,
        settings: &Settings,
    ) -> Result<Arm, ArmProblem> {
        let own = Settings::of(group, &chain)?;
        let kept = own
            .keys
            .iter()
            .filter(|(key, _)| !settings.says(key.name()));
        let all = Settings {
            keys: kept.chain(&settings.keys).cloned().collect(),
            chain: own.chain,
        };
        made(group, bare(&chain), all, |_, text| text.to_owned())
    }

    /// One of a group and a chain as an arm says it: `CHAIN[:BYTESB][/KEY=VALUE...]`.
    ///
    /// # Errors
    ///
    /// [`ArmError`] where the text is no chain.
    pub fn of_chain(group: Group, text: &str) -> Result<Arm, ArmError> {
        let parsed = check_visible(text).and_then(|()| parse(group, text));
        parsed.map_err(|problem| ArmError {
            arm: format!("{group}/{text}"),
            problem,
        })
    }

    /// The same arm with a key said otherwise.
    ///
    /// # Errors
    ///
    /// Why it can't have that.
    pub fn with(&self, key: &str, value: &str) -> Result<Arm, ArmProblem> {
        self.with_all(&[(key, value)])
    }

    /// The same arm with some keys said otherwise, none of which need be possible without the others.
    ///
    /// # Errors
    ///
    /// Why it can't have these.
    pub fn with_all(&self, settings: &[(&str, &str)]) -> Result<Arm, ArmProblem> {
        self.saying(&[], settings)
    }

    /// The same arm silent about some keys, and with others said otherwise.
    ///
    /// # Errors
    ///
    /// Why it can't be so.
    pub fn saying(&self, unsaid: &[&str], settings: &[(&str, &str)]) -> Result<Arm, ArmProblem> {
        let settings = Settings::of_keys(settings)?;
        let is_kept = |key: &Key| !unsaid.contains(&key.name()) && !settings.says(key.name());
        let kept = self.settings.keys.iter().filter(|(key, _)| is_kept(key));
        let all = Settings {
            chain: self.settings.chain.clone(),
            keys: kept.chain(&settings.keys).cloned().collect(),
        };
        // What stays is as the arm has it, however that was written.
        made(self.group, bare(&self.chain), all, |key, text| {
            let kept = is_kept(&key).then(|| key.get(self)).flatten();
            kept.unwrap_or_else(|| text.to_owned())
        })
    }

    /// The same arm with all that somebody says.
    ///
    /// # Errors
    ///
    /// Why it can't have these.
    pub fn with_settings(&self, settings: &Settings) -> Result<Arm, ArmProblem> {
        self.with_all(&settings.pairs().collect::<Vec<_>>())
    }

    /// The same arm with a Merkle Tree Certificate in the place of its chain: `form` is the value of `delivery=`. It comes alone,
    /// and its proof is what intermediates and timestamps are for.
    ///
    /// # Errors
    ///
    /// Why it can't have that.
    pub fn as_merkle_tree_certificate(&self, form: &str) -> Result<Arm, ArmProblem> {
        // rustls can't negotiate it, and sends it to all.
        let is_unsaid = [self.client_stack, self.server_stack].contains(&StackName::Rustls);
        let hello = is_unsaid.then_some(("hello", "nothing"));
        let settings: Vec<_> = [("delivery", form)].into_iter().chain(hello).collect();
        self.saying(&["intermediates", "scts", "sct_algorithm"], &settings)
    }

    /// The same with its chain padded to a Certificate message of so many bytes. `None` unless it is made, without
    /// padding so far, and can be had so large.
    pub fn padded(&self, bytes: usize) -> Option<Arm> {
        let ArmChain::Made(spec) = &self.chain else {
            return None;
        };
        if spec.certificate_bytes.is_some() {
            return None;
        }
        let mut arm = Arm {
            chain: ArmChain::Made(ChainSpec {
                certificate_bytes: Some(bytes),
                ..spec.clone()
            }),
            name: format!("{} {bytes}B", self.name),
            ..self.clone()
        };
        arm.settings.chain += &format!(":{bytes}B");
        arm.check().ok()?;
        arm.label = arm.written();
        Some(arm)
    }

    /// Whether the arm itself says this key.
    pub fn says(&self, key: &str) -> bool {
        self.settings.says(key)
    }

    /// The keys that it says and another arm does not, or otherwise.
    pub fn settings_unlike(&self, other: &Arm) -> Settings {
        let settings = self.settings.keys.iter();
        Settings {
            chain: String::new(),
            keys: settings
                .filter(|settings| !other.settings.keys.contains(settings))
                .cloned()
                .collect(),
        }
    }

    /// Whether a program that people run is at one of its ends.
    pub fn has_foreign_ends(&self) -> bool {
        self.server.is_foreign() || self.client.is_foreign()
    }

    /// Whether one is, and carried over QUIC.
    pub fn is_of_programs_over_quic(&self) -> bool {
        self.transport == TransportName::Quic && self.has_foreign_ends()
    }

    /// The same over another transport, under the same name.
    ///
    /// # Errors
    ///
    /// What of it that transport does not have.
    pub fn over(&self, transport: TransportName) -> Result<Arm, ArmProblem> {
        let arm = Arm {
            transport,
            ..self.clone()
        };
        arm.check()?;
        Ok(arm)
    }

    /// Whether all of it can be had over QUIC.
    fn check_quic(&self) -> Result<(), ArmProblem> {
        const OF_TCP: &str = "it is of records in a stream, and QUIC has neither: leave it out";
        const NO_DNS: &str = "certificates come through DNS over TCP alone: leave it out";
        const NO_RETRY: &str =
            "its first connection may fail, and clients connect again over TCP alone: leave it out";
        let refused = |key, why| Err(ArmProblem::NotOverQuic { key, why });
        for key in ["record_size", "flush", "client_hello_split"] {
            if self.says(key) {
                return refused(key, OF_TCP);
            }
        }
        if !self.server.speaks(TransportName::Quic) {
            return refused(
                "server",
                "it is reached over TCP alone: write quic-go, s2n-quic, caddy or quiche, or leave it out",
            );
        }
        if self.amplification.is_some() && !self.server.has_quic_knobs() {
            return refused(
                "amplification",
                "of all servers, quiche alone can be set so: add server=quiche, or leave it out",
            );
        }
        if self.client.is_foreign() {
            for key in ["client_stack", "key_share", "max_cert_list"] {
                if self.says(key) {
                    return refused(
                        key,
                        "it is for Lastbyte's own client, and a program that people run decides that itself: leave it out",
                    );
                }
            }
        }
        for (key, stack) in [
            ("stack", self.server_stack),
            ("client_stack", self.client_stack),
        ] {
            if !stack.has_quic() {
                return refused(
                    key,
                    "openssl and rustls have TLS without records here: leave it out",
                );
            }
        }
        match (self.delivery.asks_dns(), self.delivery.retries()) {
            (true, _) => refused("delivery", NO_DNS),
            (_, true) => refused("delivery", NO_RETRY),
            (false, false) => Ok(()),
        }
    }

    fn written(&self) -> String {
        format!("{}/{}", self.group, self.settings)
    }

    /// Whether all that it has can be had together.
    fn check(&self) -> Result<(), ArmProblem> {
        self.delivery.check_arm(self)?;
        if self.transport == TransportName::Quic {
            self.check_quic()?;
        } else {
            let of_quic = [
                (self.address_validation.is_some(), "address_validation"),
                (self.amplification.is_some(), "amplification"),
                (!self.server.speaks(TransportName::Tcp), "server"),
                (self.client.is_foreign(), "client_program"),
            ];
            if let Some((_, key)) = of_quic.into_iter().find(|(is_so, _)| *is_so) {
                return Err(ArmProblem::OfQuic { key });
            }
        }
        let early_data = self.says("early_data");
        let resumes = matches!(self.sessions, Sessions::Share { resumes, .. } if resumes != Probability::ZERO);
        if early_data && !resumes {
            return Err(ArmProblem::NobodyResumes);
        }
        if (early_data || self.resumption == Resumption::EarlyData)
            && !self.key_shares.contains(&self.group)
        {
            return Err(ArmProblem::AskedAgain(self.group));
        }
        for chain in [Some(&self.chain), self.client_chain.as_ref()] {
            if let Some(ArmChain::Made(spec)) = chain {
                let valid = spec.validate();
                valid.map_err(|error| ArmProblem::Chain(Box::new(error)))?;
            }
        }
        Ok(())
    }
}

/// A chain without what its keys say of it.
fn bare(chain: &ArmChain) -> ArmChain {
    match chain {
        ArmChain::Made(spec) => ArmChain::Made(ChainSpec {
            role: spec.role,
            ca: spec.ca,
            root_key: spec.root_key,
            certificate_bytes: spec.certificate_bytes,
            origin: spec.origin,
            ..ChainSpec::new(spec.leaf)
        }),
        ArmChain::Pem(files) => ArmChain::Pem(PemFiles::new(files.chain.clone())),
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.label)
    }
}
