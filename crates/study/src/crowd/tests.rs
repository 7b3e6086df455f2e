#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

#[test]
fn cross_traffic_is_read_and_written() {
    for (text, written) in [
        ("none", "none"),
        ("cubic", "cubic"),
        ("cubic down", "cubic"),
        ("cubic+cubic", "2 cubic"),
        ("2 cubic+bbr+3  reno up", "2 cubic+bbr+3 reno up"),
        ("32 bbr", "32 bbr"),
    ] {
        let read: CrossTraffic = text.parse().unwrap();
        assert_eq!(read.to_string(), written);
        assert_eq!(written.parse::<CrossTraffic>().unwrap(), read);
    }
    let both: CrossTraffic = "2 cubic+bbr up".parse().unwrap();
    assert_eq!(both.flows().len(), 3);
    assert_eq!(both.flows()[2].way, CrossWay::Up);
}

#[test]
fn what_is_no_cross_traffic_says_what_is() {
    let problems = [
        "",
        "vegas",
        "0 cubic",
        "33 cubic",
        "32 cubic+bbr",
        "2",
        "cubic sideways",
        "cubic up up",
        "cubic+",
        "99999999999999999999 bbr",
    ]
    .map(|text| text.parse::<CrossTraffic>().unwrap_err().to_string());
    insta::assert_snapshot!(problems.join("\n"));
}
