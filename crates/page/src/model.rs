//! Pages from how many resources of each kind there are, and how many bytes they have.

use lastbyte_link::Bytes;

use crate::page::{Kind, Loading, Page, PageError, Resource};

/// How many resources of each kind a page has, and on how many origins.
///
/// Every number has a source, and what finds what is a choice of ours, the same for all:
///
/// - Resources of a kind are equally large, but for documents: the first has all of their bytes, less 1 KiB for each frame.
/// - Styles, images and frames stand in the document, but each sixth image is the background of something, named by a style.
/// - Of three scripts, one holds up the parser, one is deferred, and one is asked for by that one.
/// - Fonts are named by styles, and data is asked for by scripts, both in turn.
/// - Documents and styles are on the first origin. All else is spread: the first of a kind on the first origin, the second on
///   the second, and so on around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// How many origins, 1 at least.
    pub origins: u8,
    /// What there is of each kind; of a kind that is not there, nothing.
    pub parts: Vec<Part>,
}

/// All resources of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Of which kind.
    pub kind: Kind,
    /// How many.
    pub count: u32,
    /// How large all of them are together.
    pub bytes: Bytes,
}

/// Models that have a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The median page on desktops, of HTTP Archive's crawl in October 2024 (Web Almanac 2024,
    /// chapter Page Weight): 71 requests and 2,652 KB, of which HTML 2 and 18 KB, CSS 8 and 78 KB,
    /// fonts 4 and 131 KB, JavaScript 24 and 613 KB, images 18 and 1,054 KB.
    ///
    /// A KB has 1,024 bytes there. Requests are of all pages, bytes of home pages, as published.
    /// Medians do not add up: the sum of those of kinds is 56 requests and 1,894 KB. What is left
    /// to the median of the whole, 15 requests and 758 KB (video, data, what has no kind there), is
    /// data that scripts ask for.
    Median2024,
}

lastbyte_link::named!(Named, "model of a page", { Median2024 => "median-2024" });

impl Named {
    /// The model, on one origin.
    #[must_use]
    pub fn model(self) -> Model {
        let (whole, parts) = match self {
            Named::Median2024 => (
                (71, 2_652),
                [
                    (Kind::Document, 2, 18),
                    (Kind::Style, 8, 78),
                    (Kind::Font, 4, 131),
                    (Kind::Script, 24, 613),
                    (Kind::Image, 18, 1_054),
                ],
            ),
        };
        let part = |kind, count, kib: u64| Part {
            kind,
            count,
            bytes: Bytes(kib << 10),
        };
        let left = parts.iter().fold(whole, |(requests, kib), (_, n, kibs)| {
            (requests - n, kib - kibs)
        });
        let parts = parts.map(|(kind, count, kib)| part(kind, count, kib));
        let rest = part(Kind::Fetch, left.0, left.1);
        Model {
            origins: 1,
            parts: parts.into_iter().chain([rest]).collect(),
        }
    }
}

impl Model {
    /// The page.
    ///
    /// # Errors
    ///
    /// If there is no document, an origin without anything, or more than a browser can load.
    pub fn page(&self) -> Result<Page, PageError> {
        let mut resources = Vec::new();
        // What others are found in comes first.
        let order = [
            Kind::Document,
            Kind::Style,
            Kind::Script,
            Kind::Font,
            Kind::Image,
            Kind::Fetch,
        ];
        for kind in order {
            let of_kind = || self.parts.iter().filter(|part| part.kind == kind);
            let count = of_kind().fold(0, |sum: u32, part| sum.saturating_add(part.count));
            let bytes = of_kind().fold(0, |sum: u64, part| sum.saturating_add(part.bytes.0));
            // Told before they are made.
            let so_many = resources.len() + count as usize;
            if so_many > Page::MOST_RESOURCES {
                return Err(PageError::TooMany {
                    count: so_many,
                    most: Page::MOST_RESOURCES,
                });
            }
            for (nth, body) in shares(kind, count, bytes).into_iter().enumerate() {
                let resource = self.resource(kind, nth, Bytes(body), &resources);
                resources.push(resource);
            }
        }
        let page = Page::new(resources)?;
        if page.origins() == self.origins {
            Ok(page)
        } else {
            Err(PageError::Origins {
                origins: self.origins,
                used: page.origins(),
            })
        }
    }

    /// The `nth` resource of a kind, on a page that has those `before`.
    fn resource(&self, kind: Kind, nth: usize, body: Bytes, before: &[Resource]) -> Resource {
        let places = |wanted: Kind| {
            let all = before.iter().enumerate();
            all.filter(move |(_, one)| one.kind == wanted)
                .map(|(place, _)| place)
        };
        let in_turn = |wanted: Kind| {
            let count = places(wanted).count();
            match count {
                0 => Some(0),
                _ => places(wanted).nth(nth % count),
            }
        };
        let (found_in, loading) = match (kind, nth) {
            (Kind::Document, 0) => (None, Loading::Usual),
            (Kind::Script, _) if nth % 3 == 2 => (places(kind).next_back(), Loading::Deferred),
            (Kind::Script, _) if nth % 3 == 1 => (Some(0), Loading::Deferred),
            (Kind::Image, _) if nth % 6 == 5 => (in_turn(Kind::Style), Loading::Usual),
            (Kind::Font, _) => (in_turn(Kind::Style), Loading::Usual),
            (Kind::Fetch, _) => (in_turn(Kind::Script), Loading::Usual),
            _ => (Some(0), Loading::Usual),
        };
        let origin = match kind {
            Kind::Document | Kind::Style | Kind::Redirect => 0,
            Kind::Script | Kind::Image | Kind::Font | Kind::Fetch => {
                nth % usize::from(self.origins.max(1))
            }
        };
        Resource {
            kind,
            body,
            origin: u8::try_from(origin).unwrap_or(u8::MAX),
            found_in,
            loading,
            observed: None,
        }
    }
}

/// How many bytes each of `count` resources has.
fn shares(kind: Kind, count: u32, bytes: u64) -> Vec<u64> {
    /// Of a document inside another one.
    const FRAME: u64 = 1 << 10;
    let count = u64::from(count);
    if kind == Kind::Document && count > 0 {
        let frame = FRAME.min(bytes / count);
        let first = bytes - frame * (count - 1);
        return (0..count)
            .map(|nth| if nth == 0 { first } else { frame })
            .collect();
    }
    let (share, left) = (
        bytes.checked_div(count).unwrap_or(0),
        bytes.checked_rem(count).unwrap_or(0),
    );
    (0..count)
        .map(|nth| share + u64::from(nth < left))
        .collect()
}
