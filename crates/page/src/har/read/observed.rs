//! What a HAR says of a resource besides its kind, its body and its finder.

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use lastbyte_link::Bytes;

use super::{Entry, Header};
use crate::page::{Caching, Keeping, Kind, Loading, Priority, Resource};

/// A year, for which what has moved for good is kept.
const YEAR: u32 = 365 * 24 * 3600;

impl Entry {
    /// How urgent it was in the end, as Chromium says.
    pub(super) fn priority(&self) -> Option<Priority> {
        match self.priority.as_deref()? {
            // Of older versions.
            "Lowest" => Some(Priority::VeryLow),
            "Highest" => Some(Priority::VeryHigh),
            word => word.parse().ok(),
        }
    }

    /// Whether its priority is none of Chromium's words.
    pub(super) fn has_strange_priority(&self) -> bool {
        self.priority.is_some() && self.priority().is_none()
    }

    /// How urgent it was when it was sent: Chromium's five words are five urgencies (RFC 9218, 4.1), of which 3 is left out.
    pub(super) fn urgency(&self) -> Option<Priority> {
        self.priority()?;
        let field = field(&self.request.headers, "priority")?;
        let mut members = field.split(',').map(str::trim);
        let urgency = members.find_map(|member| member.strip_prefix("u="));
        match urgency.unwrap_or("3") {
            "0" => Some(Priority::VeryHigh),
            "1" => Some(Priority::High),
            "2" => Some(Priority::Medium),
            "3" => Some(Priority::Low),
            "4" => Some(Priority::VeryLow),
            _ => None,
        }
    }

    /// Whether it was asked for with CORS.
    pub(super) fn is_cors(&self) -> bool {
        field(&self.request.headers, "sec-fetch-mode").as_deref() == Some("cors")
    }

    /// What found it, in Chromium's words: `parser`, `script`.
    pub(super) fn is_found_by(&self, word: &str) -> bool {
        let initiator = self.initiator.as_ref();
        initiator.is_some_and(|initiator| initiator.by.as_deref() == Some(word))
    }

    /// The line in which what found it names it, from 0.
    pub(super) fn line(&self) -> Option<u32> {
        let initiator = self.initiator.as_ref()?;
        let calls = initiator.stack.as_ref().map(|stack| &stack.call_frames);
        let call = calls.and_then(|calls| calls.iter().find(|call| !call.url.is_empty()));
        let line = (initiator.line_number).or_else(|| call?.line_number)?;
        Some(line as u32)
    }

    /// The bytes of the whole response, where it came over the network.
    pub(super) fn whole_response(&self) -> Option<Bytes> {
        let response = &self.response;
        if self.is_from_cache() {
            return None;
        }
        let sum = || {
            let [body, head] = [response.body_size.0?, response.headers_size.some()?];
            Some(body.saturating_add(head))
        };
        response.transfer_size.some().or_else(sum).map(Bytes)
    }

    /// How it is named where that is a document or something else, and stands on the document's
    /// origin or elsewhere.
    pub(super) fn loading(&self, landing: Kind, finder: Kind, is_same_origin: bool) -> Loading {
        let is_low = self.priority() <= Some(Priority::Low) && self.priority().is_some();
        match landing {
            // Of scripts that are none, CORS is asked for where they come from elsewhere.
            Kind::Script if self.is_cors() && is_same_origin => Loading::Module,
            _ if finder == Kind::Document
                && landing != Kind::Fetch
                && self.is_found_by("script") =>
            {
                Loading::Inserted
            }
            Kind::Script if is_low => Loading::Deferred,
            _ => Loading::Usual,
        }
    }

    /// What a browser may keep of the response (RFC 9111, 4.2), as Chromium has it. None where no
    /// fields were recorded.
    pub(super) fn caching(&self, began: Timestamp) -> Option<Caching> {
        let fields = self.response.headers.as_deref().unwrap_or_default();
        if fields.is_empty() {
            return None;
        }
        let get = |name: &str| field(fields, name);
        let control = get("cache-control").map(|control| control.to_ascii_lowercase());
        let directives = || {
            let control = control.as_deref().unwrap_or_default();
            control.split(',').map(str::trim)
        };
        let has = |name: &str| directives().any(|directive| directive == name);
        let seconds = |name: &str| {
            let (_, value) = directives()
                .filter_map(|directive| directive.split_once('='))
                .find(|(known, _)| known.trim() == name)?;
            Some(value.trim().trim_matches('"').parse::<u64>().unwrap_or(0))
        };
        let date = |name: &str| {
            let parsed = DateTimeParser::new().parse_timestamp(get(name)?);
            Some(parsed.ok().map_or(0, Timestamp::as_second))
        };
        let now = date("date").unwrap_or(began.as_second());
        let since = |from: i64, to: i64| u64::try_from(to.saturating_sub(from)).unwrap_or(0);
        let status = self.response.status;
        let is_asked_again = has("no-cache")
            || get("vary").is_some_and(|vary| vary.trim() == "*")
            || (control.is_none() && get("pragma").as_deref() == Some("no-cache"));
        let modified = || date("last-modified").map(|modified| since(modified, now) / 10);
        let lifetime = match (seconds("max-age"), date("expires")) {
            _ if is_asked_again => 0,
            (Some(seconds), _) => seconds,
            (None, Some(expires)) => since(now, expires),
            // Moved for good.
            (None, None) if [301.0, 308.0].contains(&status) => u64::from(YEAR),
            (None, None) if [200.0, 203.0, 206.0].contains(&status) => modified().unwrap_or(0),
            (None, None) => 0,
        };
        // So old it was already.
        let age = get("age").and_then(|age| age.trim().parse().ok());
        let fresh = lifetime.saturating_sub(age.unwrap_or(0));
        let stale = if is_asked_again || has("must-revalidate") {
            0
        } else {
            seconds("stale-while-revalidate").unwrap_or(0)
        };
        let short = |seconds: u64| u32::try_from(seconds).unwrap_or(u32::MAX);
        Some(Caching {
            keeping: if has("no-store") || self.request.method != "GET" {
                Keeping::Never
            } else {
                Keeping::For {
                    fresh: short(fresh),
                    stale: short(stale),
                }
            },
            has_validator: get("etag").is_some() || get("last-modified").is_some(),
        })
    }
}

/// All values of a field, as one.
fn field(fields: &[Header], name: &str) -> Option<String> {
    let fields = fields.iter();
    let values = fields.filter(|field| field.name.eq_ignore_ascii_case(name));
    let values: Vec<&str> = values.map(|field| field.value.as_str()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

/// From when to when a response was waited for.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) began: Timestamp,
    pub(super) ended: Timestamp,
}

/// Corrects how resources are named by when what followed was asked for:
///
/// - A script of low priority is `async`, not `defer`, if it has asked for something before the document was parsed: before that and its
///   scripts were there.
/// - A picture is lazy if the parser found it, and yet it was asked for only once the last style was there, after the document.
///
/// `landed` is where a request leads in the end, `document` the page's, and `is_parsed` says of
/// which the parser was reported to have found them.
pub(super) fn timed(
    resources: &mut [Resource],
    spans: &[Span],
    document: usize,
    landed: &dyn Fn(usize) -> usize,
    is_parsed: &dyn Fn(usize) -> bool,
) {
    let Some(read) = spans.get(document).map(|span| span.ended) else {
        return;
    };
    let landing = |resources: &[Resource], place: usize| {
        let there = resources.get(landed(place));
        there.map(|resource| resource.kind)
    };
    let last = |kind: Kind, resources: &[Resource]| {
        let named = resources.iter().enumerate().filter(|(place, one)| {
            let is_named = one.found_in == Some(document) && one.loading == Loading::Usual;
            is_named && is_urgent(one) && landing(resources, *place) == Some(kind)
        });
        let ends = named.filter_map(|(place, _)| spans.get(landed(place)).map(|span| span.ended));
        ends.max()
    };
    let parsed = last(Kind::Script, resources).map_or(read, |end| end.max(read));
    let styled = last(Kind::Style, resources).filter(|end| *end > read);
    for place in 0..resources.len() {
        let (Some(resource), Some(span)) = (resources.get(place), spans.get(place)) else {
            continue;
        };
        if resource.found_in != Some(document) {
            continue;
        }
        let target = landed(place);
        let asks_before = |end: Timestamp| {
            let mut all = resources.iter().zip(spans);
            all.any(|(one, span)| one.found_in == Some(target) && span.began < end)
        };
        let loading = match (landing(resources, place), resource.loading) {
            (Some(Kind::Script), Loading::Deferred) if asks_before(parsed) => Loading::Async,
            (Some(Kind::Image), Loading::Usual)
                if is_parsed(place) && styled.is_some_and(|styled| span.began >= styled) =>
            {
                Loading::Lazy
            }
            (_, loading) => loading,
        };
        if let Some(resource) = resources.get_mut(place) {
            resource.loading = loading;
        }
    }
}

/// Whether parsing or painting waits for it, of scripts and styles that a document names.
fn is_urgent(resource: &Resource) -> bool {
    let priority = resource.observed.and_then(|observed| observed.priority);
    priority.is_none_or(|priority| priority >= Priority::Medium)
}
