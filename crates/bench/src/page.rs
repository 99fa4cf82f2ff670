//! The page that a picture is drawn on: one SVG file that needs nothing else, no font, script or image from
//! outside.
//!
//! In: a title, small print and what is drawn between them. Out: SVG text. It brings its own background,
//! light or dark as the reader prefers, so it is readable on any page.

use std::fmt::Write;

pub(crate) const WIDTH: f64 = 960.0;
/// Left edge of the title and of the caption.
pub(crate) const MARGIN: f64 = 24.0;
/// Lines of the caption: characters, and pixels from one to the next.
const CAPTION_CHARS: usize = 148;
const CAPTION_STEP: f64 = 16.0;
/// Pixels from the lower edge of what is drawn to the first line of the caption.
const CAPTION_DROP: f64 = 68.0;

const STYLE: &str = "\
text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;font-size:13px;fill:#24292f}\
.title{font-size:17px;font-weight:600}.small{font-size:11px;fill:#57606a}.name{font-weight:600}\
.back{fill:#ffffff;stroke:#d0d7de}.even{fill:#f3f5f7}.odd{fill:#e4e9ee}.grid{stroke:#d0d7de}.axis{stroke:#57606a}\
.curve{fill:none;stroke-width:2;stroke-linejoin:round}.wait{stroke-width:1.5;stroke-dasharray:2 4}\
.s0{stroke:#0969da}.t0{fill:#0969da}.s1{stroke:#bc4c00}.t1{fill:#bc4c00}.s2{stroke:#1a7f37}.t2{fill:#1a7f37}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9da7b3}.back{fill:#0d1117;stroke:#30363d}\
.even{fill:#151b23}.odd{fill:#212830}.grid{stroke:#30363d}.axis{stroke:#9da7b3}\
.s0{stroke:#58a6ff}.t0{fill:#58a6ff}.s1{stroke:#f0883e}.t1{fill:#f0883e}.s2{stroke:#3fb950}.t2{fill:#3fb950}}";
/// Colours there are; further curves begin again.
pub(crate) const COLOURS: usize = 3;

/// A whole file.
///
/// - `bottom`: the lower edge of what is drawn.
/// - `margin`: pixels from there to the end of a page without a caption.
/// - `draw`: appends what stands between title and caption.
pub(crate) fn page(
    title: &str,
    caption: &[String],
    (bottom, margin): (f64, f64),
    draw: impl FnOnce(&mut String),
) -> String {
    let caption: Vec<String> = caption.iter().flat_map(|line| wrap(line, CAPTION_CHARS)).collect();
    let height = bottom + margin + CAPTION_STEP * caption.len() as f64;
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">"#
    );
    let _ = writeln!(svg, "<title>{}</title>\n<style>{STYLE}</style>", escape(title));
    let (inner, tall) = (WIDTH - 1.0, height - 1.0);
    let _ = writeln!(svg, r#"<rect class="back" x="0.5" y="0.5" width="{inner}" height="{tall}" rx="8"/>"#);
    text(&mut svg, (MARGIN, 34.0), "title", "start", title);
    draw(&mut svg);
    for (at, line) in caption.iter().enumerate() {
        text(&mut svg, (MARGIN, bottom + CAPTION_DROP + CAPTION_STEP * at as f64), "small", "start", line);
    }
    svg.push_str("</svg>\n");
    svg
}

pub(crate) fn text(svg: &mut String, (x, y): (f64, f64), class: &str, anchor: &str, text: &str) {
    let text = escape(text);
    let _ =
        writeln!(svg, r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#);
}

/// Lines of at most `chars`, broken at spaces; a longer word stays whole.
fn wrap(line: &str, chars: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        let last = lines.last_mut().expect("begun with one");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > chars {
            lines.push(word.to_owned());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

/// XML text: markup escaped, and control characters, which XML has no way to say, left out.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !c.is_control()) {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces() {
        assert_eq!(wrap("aa bb cccccccc d", 5), ["aa bb", "cccccccc", "d"]);
    }
}
