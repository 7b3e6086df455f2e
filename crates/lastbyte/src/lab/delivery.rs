//! How the laboratory delivers a server's chain as an arm says: a file for each way that
//! [`study::Delivery`](crate::study::Delivery) has.

mod abridged;
mod compressed;
mod elided;
mod mtc;
mod pqtls_ad;

pub(super) use pqtls_ad::Lookup;
pub use pqtls_ad::PreparedDelivery;

use lastbyte_pki::Chain;
use lastbyte_tls::{self as tls, Stack};

use crate::study::{Arm, Delivery};

/// What a delivery does.
trait Mechanism {
    /// What both stacks are asked for, with the server's chain.
    ///
    /// # Errors
    ///
    /// Why that can't be, in one line with the hint.
    fn asked(&self, chain: &Chain) -> Result<tls::Delivery, String>;

    /// What clients get before their ClientHello, if they get anything.
    ///
    /// # Errors
    ///
    /// Why that can't be, in one line with the hint.
    fn prepare(
        &self,
        arm: &Arm,
        chain: &Chain,
        stack: &dyn Stack,
    ) -> Result<Option<PreparedDelivery>, String> {
        let _ = (arm, chain, stack);
        Ok(None)
    }
}

fn mechanism(delivery: &Delivery) -> Option<&dyn Mechanism> {
    match delivery {
        Delivery::Full => None,
        Delivery::PqtlsAd(delivery) => Some(delivery),
        Delivery::Compressed(delivery) => Some(delivery),
        Delivery::Elided(delivery) => Some(delivery),
        Delivery::Abridged(delivery) => Some(delivery),
        Delivery::Mtc(delivery) => Some(delivery),
    }
}

/// What the stacks of an arm are asked for, with the server's chain.
///
/// # Errors
///
/// Why that can't be, in one line with the hint.
pub(super) fn asked(arm: &Arm, chain: &Chain) -> Result<tls::Delivery, String> {
    mechanism(&arm.delivery).map_or(Ok(tls::Delivery::Full), |mechanism| mechanism.asked(chain))
}

/// What the clients of an arm get before their ClientHello, if they get anything.
///
/// # Errors
///
/// Why that can't be, in one line with the hint.
pub(super) fn prepare(
    arm: &Arm,
    chain: &Chain,
    stack: &dyn Stack,
) -> Result<Option<PreparedDelivery>, String> {
    match mechanism(&arm.delivery) {
        Some(mechanism) => mechanism.prepare(arm, chain, stack),
        None => Ok(None),
    }
}

fn to_line(error: impl ToString) -> String {
    error.to_string()
}
