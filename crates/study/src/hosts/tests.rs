#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lastbyte_page::Named;

use super::*;
use crate::{Cell, PageSource, Parameter};

#[test]
fn what_is_written_is_read() {
    for preset in Preset::ALL {
        let hosts = Hosts::of(preset);
        let mut read = Cell::default();
        read.hosts.mtu = Mtu(1280);
        let cell = Cell::of(preset);
        for name in ["mtu", "timestamps", "buffers", "tso", "writes"] {
            let parameter: Parameter = name.parse().unwrap();
            let text = parameter.of(&cell);
            assert_eq!(parameter.canonical(&text).unwrap(), text);
            parameter
                .set(&mut read, &text, &crate::StudyFolder::HERE)
                .unwrap();
        }
        assert_eq!(read.hosts, hosts);
    }
}

#[test]
fn what_can_not_be_is_refused_with_a_hint() {
    for (name, texts) in [
        ("mtu", &["575", "9001", "40", "0", "-1", "1.5KiB", ""][..]),
        ("timestamps", &["yes", "ON"]),
        ("buffers", &["small", "64KiB"]),
        (
            "receive_buffer",
            &[
                "0", "0B", "-1", "-64KiB", "4095B", "212993B", "1GiB", "64", "auto", "",
            ],
        ),
        ("tso", &["maybe"]),
        (
            "writes",
            &[
                "0B",
                "16385B",
                "8087",
                "",
                "1B+",
                "all",
                "1B+2B+3B+4B+5B+6B+7B+8B+9B+10B+11B+12B+13B",
            ],
        ),
    ] {
        let setting: Parameter = name.parse().unwrap();
        for text in texts {
            let error = setting.canonical(text).unwrap_err().to_string();
            assert!(error.contains(": "), "{error}");
        }
    }
    let mtu: Parameter = "mtu".parse().unwrap();
    assert_eq!(mtu.canonical("576B").unwrap(), "576");
    assert_eq!(
        mtu.canonical("575").unwrap_err().to_string(),
        "no MTU \"575\": write bytes from 576 to 9000, such as 1500"
    );
    let receive_buffer: Parameter = "receive_buffer".parse().unwrap();
    for text in ["0", "-1", "1MiB"] {
        assert_eq!(
            receive_buffer.canonical(text).unwrap_err().to_string(),
            format!(
                "no receive buffer {text:?}: write unset, or a size from 4KiB to 208KiB (net.core.rmem_max), such as 64KiB"
            )
        );
    }
    for text in ["unset", "4KiB", "208KiB", "5000B"] {
        assert_eq!(receive_buffer.canonical(text).unwrap(), text);
    }
}

/// Only what is left to an engine is the engine's choice, and only transfers in real time are another one.
#[test]
fn buffers_are_as_asked_or_as_the_engine_has_them() {
    let cell = |buffers, page: Option<PageSource>| {
        let mut cell = Cell {
            page,
            ..Cell::default()
        };
        cell.hosts.buffers = buffers;
        cell
    };
    let page = || Some(PageSource::Model(Named::Median2024));
    for engine in EngineName::ALL {
        for buffers in [Buffers::Linux, Buffers::Large] {
            assert_eq!(cell(buffers, None).buffers(engine), buffers);
            assert_eq!(cell(buffers, page()).buffers(engine), buffers);
        }
        assert_eq!(cell(Buffers::Auto, page()).buffers(engine), Buffers::Linux);
    }
    let transfer = cell(Buffers::Auto, None);
    assert_eq!(transfer.buffers(EngineName::Virtual), Buffers::Linux);
    assert_eq!(transfer.buffers(EngineName::Live), Buffers::Large);
    let mut set = transfer.clone();
    set.hosts.receive_buffer = ReceiveBuffer::Set(Bytes(64 << 10));
    assert_eq!(set.buffers(EngineName::Live), Buffers::Linux);
    let had = transfer.with_buffers(Buffers::Large);
    assert_eq!(had.hosts.buffers, Buffers::Large);
    assert_eq!(had.with_buffers(Buffers::Linux), had);
}

#[test]
fn the_last_write_repeats() {
    let writes: Writes = "17B+8087B".parse().unwrap();
    assert_eq!(
        [0, 1, 2, 99].map(|number| writes.size(number)),
        [Some(17), Some(8087), Some(8087), Some(8087)]
    );
    assert_eq!(Writes::WHOLE.size(0), None);
}

#[test]
fn a_segment_has_what_headers_leave() {
    let hosts = Hosts::default();
    assert_eq!((hosts.mss(), hosts.headers()), (1448, 52));
    let without = Hosts {
        timestamps: Timestamps::Off,
        ..hosts
    };
    assert_eq!(without.mss(), 1460);
}
