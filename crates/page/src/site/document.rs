//! Documents of recorded pages, in which everything stands where it was found.

use std::fmt::Write;

use super::text::{Found, Written, fill, words};
use crate::page::{Kind, Loading, Priority};

/// Where pictures stand: on the screen, below it, or so far below it that a lazy one is still asked
/// for (Chromium: 1250 pixels over fast networks). They take no place from text.
const PLACES: &str =
    "<style>.v,.b,.l{position:absolute}.b{top:2000px}.l{top:1500px}p.v,p.b{width:160px}</style>";
/// A document while it is written: first its head, then parts between which there is text.
#[derive(Default)]
struct Parts {
    head: String,
    body: Vec<String>,
    is_in_body: bool,
}

impl Parts {
    fn push(&mut self, text: &str) {
        if self.is_in_body {
            self.body.push(text.to_owned());
        } else {
            self.head += text;
        }
    }
}

impl Written<'_> {
    /// HTML that names what was recorded in its order. What stands before the first picture or
    /// frame, or before what was as urgent as behind one, is in the head.
    pub(super) fn recorded_document(&self) -> Vec<u8> {
        let mut found: Vec<Found> = self.found().collect();
        found.sort_by_key(|found| found.line());
        let holds_up = found.iter().rposition(Found::is_of_head);
        let largest = found
            .iter()
            .filter(|one| one.is_on_screen())
            .map(|one| one.bytes);
        let largest = largest.max();
        let mut parts = Parts::default();
        parts.head += self.start();
        if found.iter().any(|one| one.kind == Kind::Image) || self.shown().next().is_some() {
            parts.head += PLACES;
        }
        // Pictures that were named already, and are still to be shown.
        let mut named: Vec<String> = Vec::new();
        for (nth, one) in found.iter().enumerate() {
            match one.kind {
                Kind::Image if one.loading != Loading::Inserted => {
                    let image = one.image(one.is_on_screen() && Some(one.bytes) == largest);
                    if holds_up.is_some_and(|last| last > nth) {
                        let (url, attributes) = (&one.url, one.attributes());
                        parts.push(&format!(
                            "<link rel=preload as=image href={url}{attributes}>"
                        ));
                        named.push(image);
                    } else {
                        self.enter_body(&mut parts, &mut named);
                        parts.push(&image);
                    }
                }
                Kind::Document if one.loading != Loading::Inserted => {
                    self.enter_body(&mut parts, &mut named);
                    parts.push(&format!("<iframe src={}></iframe>", one.url));
                }
                _ => {
                    if one.is_late() {
                        self.enter_body(&mut parts, &mut named);
                    }
                    parts.push(&one.element());
                }
            }
        }
        self.enter_body(&mut parts, &mut named);
        // Those that a frame stands before.
        parts.body.append(&mut named);
        self.text_between(parts.head, &parts.body, &self.fonts())
    }

    /// Goes on with the body, in which stands first what styles ask for, and the pictures that the
    /// head has named.
    fn enter_body(&self, parts: &mut Parts, named: &mut Vec<String>) {
        if parts.is_in_body {
            return;
        }
        parts.is_in_body = true;
        for place in self.shown() {
            let shown = match self.page.landing(place) {
                Kind::Font => format!("<p class=c{place}>text</p>"),
                _ => format!("<p class=\"c{place} {}\"></p>", self.background(place)),
            };
            parts.push(&shown);
        }
        parts.body.append(named);
    }

    /// Where a background stands that a style names.
    fn background(&self, place: usize) -> &'static str {
        let resource = self.page.resources().get(place);
        let observed = resource.and_then(|resource| resource.observed);
        let priority = observed.and_then(|observed| observed.priority);
        match priority {
            Some(priority) if priority < Priority::High => "b",
            _ => "v",
        }
    }

    /// The fonts that its text is in, one after the other.
    fn fonts(&self) -> Vec<usize> {
        let fonts = self.shown();
        fonts
            .filter(|place| self.page.landing(*place) == Kind::Font)
            .collect()
    }

    /// Makes it as long as it should be by text in so many paragraphs of the same length as there
    /// are places for it, and by blanks.
    fn text_between(&self, head: String, body: &[String], fonts: &[usize]) -> Vec<u8> {
        let open = |nth: usize| match fonts.get(nth % fonts.len().max(1)) {
            Some(font) => format!("<p class=c{font}>"),
            None => "<p>".to_owned(),
        };
        let fixed = head.len() + body.iter().map(String::len).sum::<usize>();
        let gaps = body.len() + 1;
        let each = self.size().saturating_sub(fixed) / gaps;
        let mut out = head.into_bytes();
        let paragraph = |out: &mut Vec<u8>, nth: usize| {
            let open = open(nth);
            if let Some(letters) = each.checked_sub(open.len() + "</p>".len()) {
                out.extend(open.into_bytes());
                words(out, letters);
                out.extend(b"</p>");
            }
        };
        paragraph(&mut out, 0);
        for (nth, part) in (1..).zip(body) {
            out.extend(part.as_bytes());
            paragraph(&mut out, nth);
        }
        fill(out, self.size(), b"", b"")
    }
}

impl Found {
    fn priority(&self) -> Option<Priority> {
        self.observed.and_then(|observed| observed.priority)
    }

    fn line(&self) -> u32 {
        self.observed.map_or(0, |observed| observed.line)
    }

    /// Whether it is a picture on the screen: one that became urgent because of where it was, or of
    /// which nothing is known.
    pub(super) fn is_on_screen(&self) -> bool {
        let asked = self.observed.and_then(|observed| observed.asked);
        let was_less = asked.is_none_or(|asked| asked < Priority::High);
        let is_urgent = self
            .priority()
            .is_none_or(|priority| priority >= Priority::High);
        self.kind == Kind::Image && is_urgent && was_less
    }

    /// Whether it is more urgent than it were behind a picture that is not preloaded.
    fn is_of_head(&self) -> bool {
        let usual = match self.kind {
            Kind::Script => Priority::High,
            Kind::Style => Priority::VeryHigh,
            _ => return false,
        };
        self.loading == Loading::Usual && self.priority() == Some(usual)
    }

    /// Whether it is less urgent, as things are that stand behind a picture.
    fn is_late(&self) -> bool {
        let can_be = matches!(self.kind, Kind::Script | Kind::Style);
        can_be && self.loading == Loading::Usual && self.priority() == Some(Priority::Medium)
    }

    /// What it is asked for with if that is not what its kind and place come to by themselves: `
    /// fetchpriority=high`.
    fn hint(&self) -> Option<&'static str> {
        let observed = self.observed?;
        let priority = observed.priority?;
        let is_urgent = priority >= Priority::High;
        match (self.kind, self.loading) {
            (Kind::Image, _) => (observed.asked >= Some(Priority::High)).then_some("high"),
            (Kind::Script, Loading::Deferred | Loading::Async | Loading::Inserted) => {
                is_urgent.then_some("high")
            }
            (Kind::Script, Loading::Module) => (!is_urgent).then_some("low"),
            (Kind::Style, _) => (priority == Priority::High).then_some("low"),
            (Kind::Fetch, _) => (!is_urgent).then_some("low"),
            _ => None,
        }
    }

    /// Attributes of how it is asked for.
    fn attributes(&self) -> String {
        let mut all = String::new();
        if self.observed.is_some_and(|observed| observed.is_cors) {
            all += " crossorigin";
        }
        if let Some(hint) = self.hint() {
            all += " fetchpriority=";
            all += hint;
        }
        all
    }

    /// The element of a picture.
    fn image(&self, is_largest: bool) -> String {
        let Found { url, .. } = self;
        let attributes = self.attributes();
        let (width, height) = self.area();
        let spot = match self.loading {
            Loading::Lazy if !self.is_on_screen() => "loading=lazy class=l".to_owned(),
            Loading::Lazy => format!("loading=lazy {}", self.screen_place()),
            _ if is_largest => {
                return format!(
                    "<img src={url}{attributes} class=v style=top:300px width=1000 height=400>"
                );
            }
            _ if self.is_on_screen() => self.screen_place(),
            _ => "class=b".to_owned(),
        };
        format!("<img src={url}{attributes} {spot} width={width} height={height}>")
    }

    /// The size of a picture. Chromium finds the first five more urgent that are larger than 10,000
    /// pixels.
    fn area(&self) -> (u32, u32) {
        let asked = self.observed.and_then(|observed| observed.asked);
        match asked.or(self.priority()) {
            Some(Priority::VeryLow | Priority::Low) => (100, 100),
            _ => (160, 120),
        }
    }

    /// A place on the screen, in two rows of eight.
    fn screen_place(&self) -> String {
        let (left, top) = (self.place % 8 * 160, self.place / 8 % 2 * 120);
        format!("class=v style=left:{left}px;top:{top}px")
    }

    /// The element of what is no picture on its own and no frame.
    fn element(&self) -> String {
        let Found { url, .. } = self;
        let attributes = self.attributes();
        if self.loading == Loading::Inserted {
            return format!("<script>{}</script>", self.javascript());
        }
        match self.kind {
            Kind::Style => match self.priority() {
                // As pages have it that wait for nothing.
                Some(Priority::VeryLow | Priority::Low) => format!(
                    "<link rel=stylesheet href={url}{attributes} media=print onload=this.media='all'>"
                ),
                _ => format!("<link rel=stylesheet href={url}{attributes}>"),
            },
            Kind::Script => {
                let how = match self.loading {
                    Loading::Deferred => " defer",
                    Loading::Async => " async",
                    Loading::Module => " type=module",
                    Loading::Usual | Loading::Inserted | Loading::Lazy => "",
                };
                format!("<script{how} src={url}{attributes}></script>")
            }
            Kind::Font => {
                let preload = match self.priority() {
                    Some(Priority::High) => {
                        format!("<link rel=preload as=font href={url} crossorigin>")
                    }
                    _ => String::new(),
                };
                format!("{preload}<style>{}</style>", self.css())
            }
            Kind::Fetch => format!("<script>{}</script>", self.javascript()),
            Kind::Image | Kind::Document | Kind::Redirect => String::new(),
        }
    }

    /// A statement that has an element, `e`, asked for as it was.
    pub(super) fn request_settings(&self) -> String {
        let mut all = String::new();
        let Some(observed) = self.observed else {
            return all;
        };
        if observed.is_cors {
            all += "e.crossOrigin=\"\";";
        }
        if let Some(hint) = self.hint() {
            let _ = write!(all, "e.fetchPriority=\"{hint}\";");
        }
        if self.kind == Kind::Image {
            let place = if self.is_on_screen() {
                "top:0"
            } else {
                "top:2000px"
            };
            let _ = write!(all, "e.style=\"position:absolute;{place}\";");
        }
        if self.loading == Loading::Module {
            all += "e.type=\"module\";";
        }
        all
    }

    /// What `fetch` is given besides.
    pub(super) fn options(&self) -> &'static str {
        match self.hint() {
            Some("low") => ",{priority:\"low\"}",
            _ => "",
        }
    }
}
