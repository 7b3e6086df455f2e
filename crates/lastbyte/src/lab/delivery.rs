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
use lastbyte_tls::observer::Side;
use lastbyte_tls::{self as tls, Stack, StackName};

use crate::study::{Arm, Delivery};

/// What a delivery does.
trait Mechanism {
    /// What both stacks are asked for, with nothing of a chain in it.
    ///
    /// # Errors
    ///
    /// Why that can't be, in one line with the hint.
    fn bare(&self) -> Result<tls::Delivery, String>;

    /// The same, with the server's chain.
    ///
    /// # Errors
    ///
    /// Why that can't be, in one line with the hint.
    fn configure(&self, chain: &Chain) -> Result<tls::Delivery, String> {
        let _ = chain;
        self.bare()
    }

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
pub(super) fn configure(arm: &Arm, chain: &Chain) -> Result<tls::Delivery, String> {
    mechanism(&arm.delivery).map_or(Ok(tls::Delivery::Full), |mechanism| {
        mechanism.configure(chain)
    })
}

/// Whether a side of a stack can deliver so, with a handshake that every stack can do.
pub fn delivers(stack: StackName, side: Side, delivery: &Delivery) -> bool {
    let bare = match mechanism(delivery) {
        Some(mechanism) => mechanism.bare(),
        None => Ok(tls::Delivery::Full),
    };
    bare.is_ok_and(|bare| tls::delivers(stack, side, &bare))
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
