//! Drawings in other forms: pictures of dots, and PDF where that is built in.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};
use thiserror::Error;

/// Dots for each pixel of the drawing.
const SCALE: f32 = 2.0;

/// Why a figure can't be drawn in another form.
#[derive(Debug, Error)]
pub enum DrawError {
    /// Nothing can be written.
    #[error("no font to draw PNG or PDF with: install one (apt-get install fonts-dejavu-core)")]
    NoFont,
    /// There is no room.
    #[error("the figure has no size")]
    NoSize,
    /// The drawing is none.
    #[error(transparent)]
    Svg(#[from] resvg::usvg::Error),
    /// The picture can't be written.
    #[error("{0}")]
    Png(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The page can't be drawn.
    #[cfg(feature = "pdf")]
    #[error("the figure can't be drawn as PDF")]
    NoPdf,
    /// The page can't be written.
    #[cfg(feature = "pdf")]
    #[error("{0:?}")]
    Pdf(krilla::error::KrillaError),
}

/// Draws pictures with the fonts of this machine.
pub(in super::super) struct Painter(Arc<fontdb::Database>);

impl Painter {
    /// # Errors
    ///
    /// When the machine has no font, with the hint.
    pub(in super::super) fn find() -> Result<Option<Painter>, DrawError> {
        let mut fonts = fontdb::Database::new();
        fonts.load_system_fonts();
        Painter::of(fonts).map(Some)
    }

    fn of(mut fonts: fontdb::Database) -> Result<Painter, DrawError> {
        let names = |face: &fontdb::FaceInfo| face.families.first().map(|(name, _)| name.clone());
        let all: Vec<String> = fonts.faces().filter_map(names).collect();
        // What a style calls sans-serif is some font, and any is better than none.
        let is_sans = |name: &&String| name.contains("Sans") && !name.contains("Mono");
        let usual = all.iter().find(is_sans).or(all.first()).cloned();
        let usual = usual.ok_or(DrawError::NoFont)?;
        fonts.set_sans_serif_family(usual);
        Ok(Painter(Arc::new(fonts)))
    }

    /// A drawing in every form besides SVG that is built in, with how its file's name ends: PNG with as many dots as a good
    /// screen has, and PDF.
    ///
    /// # Errors
    ///
    /// Why it can't be drawn.
    pub(in super::super) fn forms(
        &self,
        svg: &str,
    ) -> Result<Vec<(&'static str, Vec<u8>)>, DrawError> {
        Ok(vec![
            ("png", self.scaled(svg, SCALE)?),
            #[cfg(feature = "pdf")]
            ("pdf", self.pdf(svg)?),
        ])
    }

    /// A drawing as PNG, with a dot for each pixel.
    ///
    /// # Errors
    ///
    /// Why it can't be drawn.
    pub(in super::super) fn png_as_large(&self, svg: &str) -> Result<Vec<u8>, DrawError> {
        self.scaled(svg, 1.0)
    }

    /// A page of the drawing's size, with its text as text.
    #[cfg(feature = "pdf")]
    fn pdf(&self, svg: &str) -> Result<Vec<u8>, DrawError> {
        use krilla::Document;
        use krilla::geom::Size;
        use krilla::page::PageSettings;
        use krilla_svg::{SurfaceExt, SvgSettings};

        let tree = self.tree(svg)?;
        let size = Size::from_wh(tree.size().width(), tree.size().height());
        let size = size.ok_or(DrawError::NoSize)?;
        let mut document = Document::new();
        let mut page = document.start_page_with(PageSettings::new(size));
        let mut surface = page.surface();
        surface
            .draw_svg(&tree, size, SvgSettings::default())
            .ok_or(DrawError::NoPdf)?;
        surface.finish();
        page.finish();
        document.finish().map_err(DrawError::Pdf)
    }

    fn tree(&self, svg: &str) -> Result<Tree, DrawError> {
        let options = Options {
            fontdb: Arc::clone(&self.0),
            font_family: "sans-serif".to_owned(),
            ..Options::default()
        };
        Ok(Tree::from_str(svg, &options)?)
    }

    fn scaled(&self, svg: &str, scale: f32) -> Result<Vec<u8>, DrawError> {
        let tree = self.tree(svg)?;
        let size = tree.size();
        let [width, height] =
            [size.width(), size.height()].map(|pixels| (pixels * scale).ceil() as u32);
        let mut dots = Pixmap::new(width, height).ok_or(DrawError::NoSize)?;
        let scale = Transform::from_scale(scale, scale);
        resvg::render(&tree, scale, &mut dots.as_mut());
        dots.encode_png()
            .map_err(|error| DrawError::Png(error.into()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_machine_without_fonts_is_told_how_to_get_one() {
        let error = Painter::of(fontdb::Database::new()).err().unwrap();
        insta::assert_snapshot!(error, @"no font to draw PNG or PDF with: install one (apt-get install fonts-dejavu-core)");
    }

    #[test]
    fn letters_that_no_font_has_are_no_failure() {
        let painter = Painter::find().unwrap().unwrap();
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 80 20\" width=\"80\" height=\"20\">\
                   <text x=\"0\" y=\"15\">\u{1f422} \u{5d0} \u{10ffff}</text></svg>";
        assert!(painter.scaled(svg, SCALE).unwrap().starts_with(b"\x89PNG"));
    }
}
