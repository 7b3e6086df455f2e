//! What standards have in tables.

use super::Bandwidth;

/// A modulation with the rate of its code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scheme {
    /// Of a resource element: 2 of QPSK, 4 of 16QAM, 6 of 64QAM, 8 of 256QAM.
    bits: u16,
    /// In 1024ths.
    code_rate: u16,
}

impl Scheme {
    /// 1024ths of a bit that an element carries.
    pub(super) fn efficiency(self) -> u64 {
        u64::from(self.bits) * u64::from(self.code_rate)
    }

    /// The SINR that it needs, as a ratio.
    ///
    /// Piro, Grieco, Boggia and Camarda, "A two-level scheduling algorithm for QoS support in the downlink of LTE cellular networks",
    /// European Wireless 2010, as ns-3 has it (`LteAmc`): Shannon's, but for a gap of -ln(5 BER)/1.5 at a BER of 5e-5.
    pub(super) fn sinr(self) -> f64 {
        const BIT_ERRORS: f64 = 5e-5;
        let gap = -(5.0 * BIT_ERRORS).ln() / 1.5;
        gap * ((self.efficiency() as f64 / 1024.0).exp2() - 1.0)
    }
}

/// 1024ths of a bit that an element carries by the best of the schemes that this SINR allows; nothing if it allows none.
pub(super) fn bits(schemes: &[Scheme], sinr: f64) -> u64 {
    let allowed = schemes.iter().rev().find(|scheme| scheme.sinr() <= sinr);
    allowed.map_or(0, |scheme| scheme.efficiency())
}

const fn scheme(bits: u16, code_rate: u16) -> Scheme {
    Scheme { bits, code_rate }
}

/// CQI 1 to 15: 3GPP TS 36.213, table 7.2.3-1.
pub(super) const LTE_CQI: [Scheme; 15] = [
    scheme(2, 78),
    scheme(2, 120),
    scheme(2, 193),
    scheme(2, 308),
    scheme(2, 449),
    scheme(2, 602),
    scheme(4, 378),
    scheme(4, 490),
    scheme(4, 616),
    scheme(6, 466),
    scheme(6, 567),
    scheme(6, 666),
    scheme(6, 772),
    scheme(6, 873),
    scheme(6, 948),
];

/// CQI 1 to 15, with 256QAM: 3GPP TS 38.214, table 5.2.2.1-3.
pub(super) const NR_CQI: [Scheme; 15] = [
    scheme(2, 78),
    scheme(2, 193),
    scheme(2, 449),
    scheme(4, 378),
    scheme(4, 490),
    scheme(4, 616),
    scheme(6, 466),
    scheme(6, 567),
    scheme(6, 666),
    scheme(6, 772),
    scheme(6, 873),
    scheme(8, 711),
    scheme(8, 797),
    scheme(8, 885),
    scheme(8, 948),
];

const fn bandwidth(name: &'static str, resource_blocks: u32) -> Bandwidth {
    Bandwidth {
        name,
        resource_blocks,
    }
}

/// 3GPP TS 36.101, table 5.6-1.
pub(super) const LTE_BANDWIDTHS: &[Bandwidth] = &[
    bandwidth("1.4MHz", 6),
    bandwidth("3MHz", 15),
    bandwidth("5MHz", 25),
    bandwidth("10MHz", 50),
    bandwidth("15MHz", 75),
    bandwidth("20MHz", 100),
];

/// Of subcarriers of 30 kHz, as n78 has them: 3GPP TS 38.101-1, table 5.3.2-1.
pub(super) const NR_BANDWIDTHS: &[Bandwidth] = &[
    bandwidth("10MHz", 24),
    bandwidth("15MHz", 38),
    bandwidth("20MHz", 51),
    bandwidth("25MHz", 65),
    bandwidth("30MHz", 78),
    bandwidth("40MHz", 106),
    bandwidth("50MHz", 133),
    bandwidth("60MHz", 162),
    bandwidth("70MHz", 189),
    bandwidth("80MHz", 217),
    bandwidth("90MHz", 245),
    bandwidth("100MHz", 273),
];
