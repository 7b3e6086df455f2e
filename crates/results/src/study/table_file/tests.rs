#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn columns_of_a_csv_file() {
    let columns =
        csv(b"\xef\xbb\xbf# measured in May\nrtt, class\n 5ms,near\n70ms,\"far, far\"\n").unwrap();
    assert_eq!(
        columns[0],
        ("rtt".to_owned(), vec!["5ms".to_owned(), "70ms".to_owned()])
    );
    assert_eq!(columns[1].1, ["near", "far, far"]);
}

#[test]
fn what_is_no_table() {
    insta::assert_snapshot!(
        [
            &b"a,b\n1\n"[..],
            b"a,b\n1,2,3\n",
            b"a\n\xff\xfe\n",
            b"PAR1 and no more"
        ]
        .map(|content| match content.starts_with(b"PAR1") {
            true => parquet(content).unwrap_err(),
            false => csv(content).unwrap_err(),
        })
        .join("\n")
    );
    assert_eq!(csv(b"").unwrap(), []);
}
