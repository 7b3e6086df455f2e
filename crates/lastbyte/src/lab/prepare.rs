//! Arms made ready: their chains and configured stacks.

use lastbyte_pki::{Chain, Store};
use lastbyte_tls::{Stack, TlsConfig, stack};

use super::LabError;
use crate::study::{Arm, ArmChain};

/// An arm with its chain and its stack.
pub struct PreparedArm {
    /// The arm.
    pub arm: Arm,
    /// Its chain.
    pub chain: Chain,
    /// Its stack, configured for both sides.
    pub stack: Box<dyn Stack>,
}

impl PreparedArm {
    /// Makes or loads the chain and configures the stack.
    pub fn new(arm: Arm, store: &Store) -> Result<Self, LabError> {
        let chain = match &arm.chain {
            ArmChain::Made(spec) => store.chain(spec)?,
            ArmChain::Pem(files) => lastbyte_pki::load_pem(files)?,
        };
        let stack = stack(&TlsConfig::new(arm.group, &chain))?;
        Ok(Self { arm, chain, stack })
    }
}
