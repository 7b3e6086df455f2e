//! Certificate compression, which the stacks do by themselves.

use lastbyte_pki::Chain;
use lastbyte_tls as tls;

use super::Mechanism;
use crate::study::Compressed;

impl Mechanism for Compressed {
    fn asked(&self, _: &Chain) -> Result<tls::Delivery, String> {
        Ok(tls::Delivery::Compressed(self.of_both()))
    }
}
