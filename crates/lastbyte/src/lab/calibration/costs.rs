//! What the costs of an arm's steps come to.

use std::time::Duration;

use lastbyte_flights::Compute;
use lastbyte_link::Bytes;

use crate::results::{CpuCosts, Picoseconds, RecordCost};
use crate::study::exchange::{Cut, REQUEST};
use crate::study::{Cell, RecordSize};

impl CpuCosts {
    /// Before a response of `data` bytes begins to be written. It is encrypted as a whole, but for
    /// what is over 1 MiB.
    pub(crate) fn response(&self, data: u64, records: Cut) -> Duration {
        const MOST: u64 = 1 << 20;
        let mut encrypt = Duration::ZERO;
        let mut done = 0;
        while done < data.min(MOST) {
            let payload = records.payload(done, data);
            encrypt = encrypt.saturating_add(self.encrypt.of(payload));
            done += payload.max(1) as u64;
        }
        encrypt
    }

    /// For flight arithmetic in a cell.
    pub fn compute(&self, cell: &Cell, record_size: RecordSize) -> Compute {
        let (Bytes(data), records) = (cell.data, Cut::new(record_size, cell));
        let request = |cost: RecordCost| match data {
            0 => Duration::ZERO,
            _ => cost.of(REQUEST.len()),
        };
        Compute {
            client_hello: self.client_hello,
            server_flight: self.server_flight,
            client_finish: self.client_finish + request(self.encrypt),
            response: self.server_finish + request(self.decrypt) + self.response(data, records),
        }
    }
}

impl RecordCost {
    /// The line through what two records of these payloads take, the smaller one first.
    pub(super) fn through(small: (usize, Duration), large: (usize, Duration)) -> Self {
        let bytes = large.0.saturating_sub(small.0).max(1) as u128;
        let byte = large.1.saturating_sub(small.1).as_nanos() * 1000 / bytes;
        let byte = Picoseconds(u64::try_from(byte).unwrap_or(u64::MAX));
        Self {
            record: small.1.saturating_sub(byte.times(small.0)),
            byte,
        }
    }
}
