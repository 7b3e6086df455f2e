//! Intermediates that a server leaves out for clients that have them, which the stacks do by themselves.

use lastbyte_tls as tls;

use super::Mechanism;
use crate::study::Elided;

impl Mechanism for Elided {
    fn bare(&self) -> Result<tls::Delivery, String> {
        Ok(tls::Delivery::Elided(self.0))
    }
}
