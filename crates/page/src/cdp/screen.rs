//! How far a screen is, frame by frame, and the Speed Index.

use std::time::Duration;

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::load::Frame;

/// How often each value of each colour is on a screen, as parts of all its pixels. White is
/// nothing, as on a blank page.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Histogram([[f64; 256]; 3]);

impl Histogram {
    /// Of a picture as the browser sends it, a JPEG; none if it is no such picture.
    pub(super) fn of_jpeg(picture: &[u8]) -> Option<Histogram> {
        /// Screens are sent with 500 × 500 pixels at most.
        const MOST: usize = 2_000;
        /// What compression leaves of white.
        const WHITE: u8 = 249;
        let options = DecoderOptions::default()
            .set_max_width(MOST)
            .set_max_height(MOST)
            .jpeg_set_out_colorspace(ColorSpace::RGB);
        let pixels = JpegDecoder::new_with_options(ZCursor::new(picture), options)
            .decode()
            .ok()?;
        let mut counts = [[0_u32; 256]; 3];
        let (pixels, _) = pixels.as_chunks::<3>();
        for pixel in pixels {
            if pixel.iter().all(|value| *value >= WHITE) {
                continue;
            }
            for (count, value) in counts.iter_mut().zip(pixel) {
                if let Some(count) = count.get_mut(usize::from(*value)) {
                    *count += 1;
                }
            }
        }
        let all = pixels.len().max(1) as f64;
        Some(Histogram(
            counts.map(|colour| colour.map(|count| f64::from(count) / all)),
        ))
    }

    /// How much of what is on the `last` screen is on this one.
    fn progress(&self, last: &Histogram) -> f64 {
        let pairs = || self.0.iter().flatten().zip(last.0.iter().flatten());
        let all: f64 = pairs().map(|(_, last)| last).sum();
        let there: f64 = pairs().map(|(now, last)| now.min(*last)).sum();
        if all > 0.0 { there / all } else { 1.0 }
    }
}

/// The frames of a load, from what was on the screen and when. The last one is the page as it is in
/// the end.
pub(super) fn frames(screens: &[(Duration, Histogram)]) -> Vec<Frame> {
    let Some((_, last)) = screens.last() else {
        return Vec::new();
    };
    let frame = |(at, screen): &(Duration, Histogram)| Frame {
        at: *at,
        progress: screen.progress(last),
    };
    screens.iter().map(frame).collect()
}

/// The Speed Index (WebPageTest's, by histograms of colours): how long each part of the screen does
/// not look as in the end, on average. None without a frame.
pub(super) fn speed_index(frames: &[Frame]) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    let (mut before, mut progress) = (Duration::ZERO, 0.0);
    for frame in frames {
        sum += frame.at.saturating_sub(before).mul_f64(1.0 - progress);
        before = frame.at.max(before);
        progress = frame.progress.clamp(0.0, 1.0);
    }
    (!frames.is_empty()).then(|| Duration::from_micros(sum.as_nanos().div_ceil(1_000) as u64))
}
