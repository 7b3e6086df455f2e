//! HTML, CSS, scripts and data in which a browser finds what a page says.

use std::fmt::Write;

use lastbyte_link::Bytes;

use crate::page::{Kind, Loading, Observed, Page, Resource};

/// The path of a resource on its origin. Its end says what it is, as servers go by that.
pub(super) fn path(page: &Page, place: usize) -> String {
    let end = match kind_of(page, place) {
        _ if place == 0 => return "/".to_owned(),
        Kind::Document => "html",
        Kind::Style => "css",
        Kind::Script => "js",
        Kind::Image => "png",
        Kind::Font => "ttf",
        Kind::Fetch => "json",
        Kind::Redirect => "to",
    };
    format!("/{place}.{end}")
}

fn kind_of(page: &Page, place: usize) -> Kind {
    let resource = page.resources().get(place);
    resource.map_or(Kind::Fetch, |resource| resource.kind)
}

/// A resource that is being written.
pub(super) struct Written<'a> {
    pub(super) page: &'a Page,
    pub(super) origins: &'a [String],
    pub(super) place: usize,
    /// How many bytes it should have.
    pub(super) body: u64,
}

impl Written<'_> {
    /// How many bytes it should have.
    pub(super) fn size(&self) -> usize {
        usize::try_from(self.body).unwrap_or(usize::MAX)
    }

    fn resource(&self) -> Option<&Resource> {
        self.page.resources().get(self.place)
    }

    /// What is found in it.
    pub(super) fn found(&self) -> impl Iterator<Item = Found> {
        let all = self.page.resources().iter().enumerate();
        all.filter(|(_, one)| one.found_in == Some(self.place))
            .map(|(place, one)| Found {
                place,
                kind: self.page.landing(place),
                loading: one.loading,
                observed: one.observed,
                bytes: one.body,
                url: self.url(place),
            })
    }

    /// How it names another resource: with the origin's name if that is another. What scripts name
    /// counts from the document that they run in.
    fn url(&self, place: usize) -> String {
        let path = path(self.page, place);
        let all = self.page.resources();
        let mut base = self.place;
        let is_imported = self.imports(place);
        while !is_imported && kind_of(self.page, base) == Kind::Script {
            match self.page.finder(base) {
                Some(above) => base = above,
                None => break,
            }
        }
        let (Some(here), Some(other)) = (all.get(base), all.get(place)) else {
            return path;
        };
        match self.origins.get(usize::from(other.origin)) {
            Some(name) if other.origin != here.origin => format!("//{name}{path}"),
            _ => path,
        }
    }

    /// Whether it is a module that imports this one.
    fn imports(&self, place: usize) -> bool {
        let all = self.page.resources();
        let is_module = |place: usize| {
            let resource = all.get(place);
            let is_module = resource.is_some_and(|one| one.loading == Loading::Module);
            is_module && self.page.landing(place) == Kind::Script
        };
        kind_of(self.page, self.place) == Kind::Script && is_module(self.place) && is_module(place)
    }

    /// Where a redirect leads.
    pub(super) fn target(&self) -> String {
        self.found()
            .map(|found| found.url)
            .next()
            .unwrap_or_default()
    }

    /// What a document begins with. Nobody shall ask for the icon that is none.
    pub(super) fn start(&self) -> &'static str {
        "<!doctype html><html lang=en><meta charset=utf-8><title>page</title><link rel=icon href=data:,>"
    }

    /// HTML: styles and scripts in the head, then pictures and frames with text between them.
    pub(super) fn document(&self) -> Vec<u8> {
        if self.resource().is_some_and(|one| one.observed.is_some()) {
            return self.recorded_document();
        }
        let mut head = self.start().to_owned();
        let mut body: Vec<String> = Vec::new();
        for found in self.found() {
            let Found { place, url, .. } = &found;
            match found.kind {
                Kind::Style => {
                    let _ = write!(head, "<link rel=stylesheet href={url}>");
                }
                Kind::Script => {
                    let defer = match found.loading {
                        Loading::Deferred => " defer",
                        _ => "",
                    };
                    let _ = write!(head, "<script{defer} src={url}></script>");
                }
                Kind::Font => {
                    let _ = write!(head, "<style>{}</style>", found.css());
                }
                Kind::Fetch => {
                    let _ = write!(head, "<script>{}</script>", found.javascript());
                }
                Kind::Image => {
                    // What is largest on the screen.
                    let size = if body.iter().any(|part| part.starts_with("<img")) {
                        "width=240 height=160"
                    } else {
                        "width=1000 height=400"
                    };
                    body.push(format!("<img src={url} {size} alt={place}>"));
                }
                Kind::Document => body.push(format!("<iframe src={url}></iframe>")),
                Kind::Redirect => {}
            }
        }
        body.extend(
            self.shown()
                .map(|place| format!("<p class=c{place}>text</p>")),
        );
        let fixed = head.len() + body.iter().map(String::len).sum::<usize>();
        let room = self.size().saturating_sub(fixed);
        // Text in so many paragraphs of the same length, and what is left in a comment.
        const PARAGRAPH: usize = "<p></p>".len();
        let gaps = body.len() + 1;
        let each = room / gaps;
        let mut out = head.into_bytes();
        let paragraph = |out: &mut Vec<u8>| {
            if let Some(letters) = each.checked_sub(PARAGRAPH) {
                out.extend(b"<p>");
                words(out, letters);
                out.extend(b"</p>");
            }
        };
        paragraph(&mut out);
        for part in body {
            out.extend(part.into_bytes());
            paragraph(&mut out);
        }
        fill(out, self.size(), b"", b"")
    }

    /// What styles ask for only once something on the page looks so: fonts, and pictures that are
    /// backgrounds.
    pub(super) fn shown(&self) -> impl Iterator<Item = usize> {
        let all = self.page.resources();
        (0..all.len()).filter(|&place| {
            let in_style = match self.page.finder(place) {
                Some(finder) if finder == self.place => self.page.landing(place) == Kind::Font,
                finder => finder.is_some_and(|finder| kind_of(self.page, finder) == Kind::Style),
            };
            let mut above = Some(place);
            while let Some(one) =
                above.filter(|one| *one == place || kind_of(self.page, *one) != Kind::Document)
            {
                above = all.get(one).and_then(|one| one.found_in);
            }
            // The target of a redirect is shown as the redirect.
            let parent = all.get(place).and_then(|one| one.found_in);
            in_style
                && above == Some(self.place)
                && parent == self.page.finder(place)
                && matches!(self.page.landing(place), Kind::Image | Kind::Font)
        })
    }

    /// CSS: imports first, as it has to be, then fonts and backgrounds.
    pub(super) fn style(&self) -> Vec<u8> {
        let mut out = String::new();
        for found in self.found().filter(|found| found.kind == Kind::Style) {
            let _ = write!(out, "@import\"{}\";", found.url);
        }
        for found in self.found().filter(|found| found.kind != Kind::Style) {
            out += &found.css();
        }
        fill(out.into_bytes(), self.size(), b"/*", b"*/")
    }

    /// A script that asks for what is found in it as soon as it runs.
    pub(super) fn script(&self) -> Vec<u8> {
        let found: String = (self.found())
            .map(|found| {
                if self.imports(found.place) {
                    format!("import\"{}\";", found.url)
                } else {
                    found.javascript()
                }
            })
            .collect();
        fill(found.into_bytes(), self.size(), b"/*", b"*/")
    }

    /// A number with blanks behind it.
    pub(super) fn data(&self) -> Vec<u8> {
        let start = b"0".get(..self.size().min(1)).unwrap_or_default();
        fill(start.to_vec(), self.size(), b"", b"")
    }
}

/// Something that is found.
pub(super) struct Found {
    pub(super) place: usize,
    pub(super) kind: Kind,
    pub(super) loading: Loading,
    pub(super) observed: Option<Observed>,
    pub(super) bytes: Bytes,
    pub(super) url: String,
}

impl Found {
    /// Styles that have a browser ask for it, where an element has the class.
    pub(super) fn css(&self) -> String {
        let Found { place, url, .. } = self;
        match self.kind {
            Kind::Font => format!(
                "@font-face{{font-family:f{place};src:url({url})}}.c{place}{{font-family:f{place}}}"
            ),
            Kind::Image => format!(".c{place}{{background:url({url});height:160px}}"),
            _ => String::new(),
        }
    }

    /// A statement that asks for it.
    pub(super) fn javascript(&self) -> String {
        let Found { place, url, .. } = self;
        let (settings, options) = (self.request_settings(), self.options());
        match self.kind {
            Kind::Fetch => format!("fetch(\"{url}\"{options}).then(r=>r.text());"),
            Kind::Font => format!("new FontFace(\"f{place}\",\"url({url})\").load();"),
            Kind::Image => format!(
                "{{let e=new Image(240,160);{settings}e.src=\"{url}\";(document.body||document.head).append(e)}}"
            ),
            Kind::Script => {
                format!(
                    "{{let e=document.createElement(\"script\");{settings}e.src=\"{url}\";document.head.append(e)}}"
                )
            }
            Kind::Style => format!(
                "{{let e=document.createElement(\"link\");{settings}e.rel=\"stylesheet\";e.href=\"{url}\";document.head.append(e)}}"
            ),
            Kind::Document => format!(
                "{{let e=document.createElement(\"iframe\");e.src=\"{url}\";(document.body||document.documentElement).append(e)}}"
            ),
            Kind::Redirect => String::new(),
        }
    }
}

/// Makes `out` exactly so long with blanks between two marks, or with blanks alone where those have
/// no room.
pub(super) fn fill(mut out: Vec<u8>, size: usize, open: &[u8], close: &[u8]) -> Vec<u8> {
    let Some(room) = size.checked_sub(out.len()) else {
        return out;
    };
    match room.checked_sub(open.len() + close.len()) {
        None => out.resize(size, b' '),
        Some(blanks) => {
            out.extend(open);
            out.resize(out.len() + blanks, b' ');
            out.extend(close);
        }
    }
    out
}

/// So many letters of words.
pub(super) fn words(out: &mut Vec<u8>, letters: usize) {
    const WORDS: &[u8] = b"the page has text of words that say nothing and take so many bytes ";
    out.extend(WORDS.iter().cycle().take(letters));
}
