//! Certificate compression, which the stacks do by themselves.

use lastbyte_tls as tls;

use super::Mechanism;
use crate::study::Compressed;

impl Mechanism for Compressed {
    fn bare(&self) -> Result<tls::Delivery, String> {
        Ok(tls::Delivery::Compressed(self.of_both()))
    }
}
