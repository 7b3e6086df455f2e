//! Zeek's logs: headers and rows in any order, as TSV, as JSON and compressed. Whatever they are, what is
//! counted adds up.
#![no_main]

use std::sync::LazyLock;

use lastbyte_fuzz::pieces;
use lastbyte_zeek::{CdnList, DEFAULT_CDN_LIST, Names, Options, Version, json, survey_bytes, text};
use libfuzzer_sys::fuzz_target;

static CDN: LazyLock<CdnList> = LazyLock::new(|| DEFAULT_CDN_LIST.parse().unwrap());

const HEADERS: [&[u8]; 3] = [
    b"#separator \\x09\n#fields\tts\tuid\tid.resp_h\tversion\tcipher\tserver_name\tresumed\testablished\tssl_history\n",
    b"#fields\tts\tuid\tproto\tservice\tduration\torig_bytes\tresp_bytes\tconn_state\tmissed_bytes\n",
    b"#fields\tts\tuid\tclient_handshake_bytes\tserver_handshake_bytes\ttcp_rtt\n",
];
const ROWS: [&[u8]; 8] = [
    b"1793491200.5\tC1\t104.16.0.1\tTLSv13\tA\ta.example\tT\tT\tCsiI\n",
    b"1793491200.5\tC1\ttcp\tssl\t0.5\t600\t4000\tSF\t0\n",
    b"1793491200.5\tC1\t58\t4500\t0.02\n",
    // Of DTLS, an interim row of a long connection, its last one, and one over UDP.
    b"1793491201.5\tC4\t104.16.0.1\tDTLSv12\tA\ta.example\tT\tT\tCsiI\n",
    b"1793491200.5\tC1\ttcp\tssl\t0.25\t300\t2000\tOTH\t0\n",
    b"1793491200.5\tC4\tudp\tssl\t0.5\t600\t4000\tSF\t0\n",
    b"{\"ts\":1793491200.5,\"uid\":\"C5\",\"version\":\"DTLSv13\",\"resumed\":false,\"established\":true}\n",
    b"{\"ts\":1793491200.5,\"uid\":\"C2\",\"version\":\"TLSv13\",\"resumed\":true,\"established\":true}\n",
];

fuzz_target!(|data: &[u8]| {
    // The whole as a file, and its pieces among what is none of the fuzzer's.
    survey(data);
    let known = HEADERS.iter().chain(&ROWS);
    let known: Vec<&[u8]> = known.copied().collect();
    let mixed: Vec<u8> = pieces(data)
        .flat_map(|(tag, piece)| known.get(usize::from(tag)).copied().unwrap_or(piece))
        .copied()
        .collect();
    survey(&mixed);
});

fn survey(bytes: &[u8]) {
    let survey = survey_bytes(
        bytes,
        Options {
            cdn: CDN.clone(),
            join_rows: 3,
            names: Names::Kept,
        },
    );
    let tally = &survey.tally;
    let connections = survey.ssl.rows - survey.ssl.repeats;
    assert_eq!(tally.joined + tally.expired + tally.unmatched, connections);
    let versions = Version::ALL.into_iter();
    let tls: u64 = versions.map(|version| tally.of_version(version).rows).sum();
    assert_eq!(
        tls + tally.quic.resumed.of + tally.quic.without_server_hello,
        connections
    );
    assert!(text(&survey, 3).lines().count() > 10);
    assert!(json(&survey, 3).starts_with('{'));
    if let Ok(profile) = survey.profile() {
        assert!(profile.contains("[population.joint]"));
    }
}
