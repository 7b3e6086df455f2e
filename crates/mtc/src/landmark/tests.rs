#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

const HOUR: u64 = 3600;

/// Hourly landmarks of 100 entries each, which expire a week after.
fn hourly(hours: u64) -> Landmarks {
    let mut landmarks = Landmarks::new();
    for hour in 1..=hours {
        let landmark = landmarks.push(100 * hour, UnixTime((hour + 168) * HOUR));
        assert_eq!(landmark.unwrap().number, hour);
    }
    landmarks
}

#[test]
fn an_entry_is_in_the_first_landmark_that_has_it() {
    let landmarks = hourly(10);
    for (index, number) in [(0, 1), (99, 1), (100, 2), (999, 10)] {
        let (landmark, subtree) = landmarks.subtree_of(index).unwrap();
        assert_eq!(landmark.number, number);
        assert!(subtree.contains(index));
    }
    assert_eq!(landmarks.covering(1000), None);
    assert_eq!(Landmarks::new().covering(0), None);
    assert_eq!(landmarks.subtrees(0), None);
    assert_eq!(landmarks.subtrees(11), None);
    assert_eq!(landmarks.subtrees(3), Some(Subtree::cover(200..300)));
}

#[test]
fn a_week_of_hourly_landmarks_is_168_or_for_a_second_169() {
    let landmarks = hourly(1000);
    let active = |now| landmarks.active(UnixTime(now), usize::MAX).unwrap();
    // The landmark of hour 332 expires now, inclusive, and that of hour 500 is just made.
    assert_eq!(active(500 * HOUR).first().unwrap().number, 332);
    let of_then = |now| active(now).iter().filter(|one| one.number <= 500).count();
    assert_eq!(of_then(500 * HOUR), 169);
    assert_eq!(of_then(500 * HOUR + 1), 168);
    let limited = landmarks.active(UnixTime(500 * HOUR), 10).unwrap();
    assert_eq!(limited.first().unwrap().number, 332, "the oldest stay");
    assert_eq!(limited.len(), 10);
}

#[test]
fn landmarks_only_grow() {
    let mut landmarks = hourly(3);
    landmarks.push(300, UnixTime(HOUR * 1000)).unwrap_err();
    landmarks.push(301, UnixTime(HOUR)).unwrap_err();
    landmarks.push(1 << 48, UnixTime(HOUR * 1000)).unwrap_err();
    assert_eq!(landmarks, hourly(3));
}

#[test]
fn the_document_goes_back_to_one_that_is_of_no_use() {
    let mut landmarks = hourly(200);
    let now = UnixTime(200 * HOUR);
    landmarks.forget_before(now);
    let document = landmarks.to_string();
    let lines: Vec<&str> = document.lines().collect();
    assert_eq!(lines[..2], ["200", "20000 1324800"]);
    assert_eq!(lines.last(), Some(&"3100 716400"));
    assert_eq!(lines.len(), 1 + 169 + 1);
    let read = Landmarks::parse(&document).unwrap();
    assert_eq!(read, landmarks);
    assert!(read.active(now, 200).is_some());
    assert_eq!(
        read.active(UnixTime(0), 200),
        None,
        "the one before is missing"
    );
    let expired = read.active(UnixTime(10_000 * HOUR), 200).unwrap();
    assert_eq!(expired, []);
    assert_eq!(Landmarks::new().to_string(), "0\n0 0\n");
}

#[test]
fn a_document_with_any_flaw_is_refused() {
    for wrong in [
        "",
        "0\n",
        "1",
        "1\n",
        "1\n5 9",
        "1\n5 9\n0 0\n0 0\n",
        "01\n5 9\n0 0\n",
        "1\n05 9\n0 0\n",
        "1\n5  9\n0 0\n",
        "1\n5 9 \n0 0\n",
        " 1\n5 9\n0 0\n",
        "1\r\n5 9\n0 0\n",
        "1\n5 9\n0 0\n\n",
        "1\n5 9\n1 0\n",
        "1\n0 9\n",
        "0\n1 9\n",
        "2\n5 9\n5 8\n",
        "2\n5 9\n6 8\n",
        "2\n5 9\n4 10\n",
        "2\n1 9\n",
        "1 1\n5\n0\n",
        "1\n5\n0\n",
        "1\n5 -9\n0 0\n",
        "1\n281474976710656 9\n0 0\n",
        "281474976710656\n5 9\n",
    ] {
        Landmarks::parse(wrong).unwrap_err();
    }
    Landmarks::parse("1\n5 9\n0 0\n").unwrap();
    Landmarks::parse("7\n50 9\n").unwrap();
    let error = Landmarks::parse("2\n5 9\n6 8\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 3 of the landmarks: its size does not go with its number and the line above"
    );
}

proptest! {
    #[test]
    fn any_document_is_judged(document in "[0-9 \\n]{0,40}") {
        if let Ok(landmarks) = Landmarks::parse(&document) {
            prop_assert_eq!(landmarks.to_string(), document);
        }
    }

    /// What is cut is refused, or ends a line early.
    #[test]
    fn a_document_that_is_cut_is_refused_or_shorter(hours in 1_u64..30, cut in 0_usize..400) {
        let document = hourly(hours).to_string();
        let cut = cut.min(document.len() - 1);
        if let Ok(landmarks) = Landmarks::parse(&document[..cut]) {
            prop_assert!(document[..cut].ends_with('\n'));
            // The empty log is gone, so the oldest one's subtrees are not known.
            prop_assert_eq!(landmarks.active(UnixTime(0), 100), None);
        }
    }
}
