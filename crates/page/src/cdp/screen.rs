//! How far a screen is, frame by frame, and the Speed Index.

use std::time::Duration;

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::load::Frame;

/// How often each value of each colour is on a screen, as parts of all its pixels.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Histogram([[f64; 256]; 3]);

impl Histogram {
    /// Of a picture as the browser sends it, a JPEG; none if it is no such picture.
    pub(super) fn of_jpeg(picture: &[u8]) -> Option<Histogram> {
        /// Screens are sent with 500 × 500 pixels at most.
        const MOST: usize = 2_000;
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
            for (count, value) in counts.iter_mut().zip(pixel) {
                if let Some(count) = count.get_mut(usize::from(*value)) {
                    *count += 1;
                }
            }
        }
        let all = pixels.len() as f64;
        Some(Histogram(
            counts.map(|colour| colour.map(|count| f64::from(count) / all)),
        ))
    }

    /// Of a blank page, which is white.
    pub(super) fn blank() -> Histogram {
        let mut colour = [0.0; 256];
        colour[255] = 1.0;
        Histogram([colour; 3])
    }

    /// How much of the way from a blank page to the `last` frame is made: what has changed already, of all that changes, each colour for itself.
    fn progress(&self, last: &Histogram) -> f64 {
        let blank = Histogram::blank();
        let colours = self.0.iter().zip(&last.0).zip(&blank.0);
        let parts = colours.map(|((now, last), blank)| {
            let (mut made, mut all) = (0.0, 0.0);
            for ((now, last), blank) in now.iter().zip(last).zip(blank) {
                let way = (last - blank).abs();
                made += way.min((now - blank).abs());
                all += way;
            }
            match all > 0.0 {
                true => made / all,
                false => 1.0,
            }
        });
        parts.sum::<f64>() / 3.0
    }
}

/// The frames of a load, from what was on the screen and when. The last one is the page as it is in the end.
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

/// The Speed Index (WebPageTest): how long each part of the screen does not look as in the end, on average. None without a frame.
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
