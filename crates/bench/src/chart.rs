//! A chart of curves over phases, as one SVG file that needs nothing else.
//!
//! In: a [`Chart`]. Out: SVG text, the same for the same chart. It brings its own background, light or dark
//! as the reader prefers, so it is readable on any page. Never: a point that was not given.
//!
//! Each phase is a shaded column, as wide as the longest time that a curve needs for it. Every curve begins
//! at the column's left edge, so that what happens in the same phase is seen side by side; a dotted line
//! leads on to the next phase.

use std::fmt::Write;

use crate::page::{COLOURS, escape, page, text};

/// What to draw.
#[derive(Clone, Debug)]
pub struct Chart {
    pub title: String,
    /// What a value is and its unit, at the vertical axis.
    pub values: String,
    /// In order, by name; each curve has as many parts.
    pub phases: Vec<String>,
    /// The phase whose highest value is marked on each curve.
    pub marked: usize,
    pub curves: Vec<Curve>,
    /// Small print below; long lines are wrapped.
    pub caption: Vec<String>,
}

/// One line, labelled by its name where it ends.
#[derive(Clone, Debug)]
pub struct Curve {
    pub name: String,
    /// For each phase the points, in order: seconds since the phase began, and the value.
    pub parts: Vec<Vec<(f64, f64)>>,
}

/// The plot: its left, right, upper and lower edge.
const LEFT: f64 = 76.0;
const RIGHT: f64 = 770.0;
const TOP: f64 = 92.0;
const BOTTOM: f64 = 440.0;
/// A character of 13 px, on average and rounded up.
const CHAR: f64 = 7.2;
/// Pixels between two labels of curves, at least.
const LABEL_STEP: f64 = 38.0;

/// Where values and times are on the page.
struct Scale {
    /// Left edge of each phase's column, and behind them the right edge of the last.
    edges: Vec<f64>,
    pixels_per_second: f64,
    value_step: f64,
    value_max: f64,
}

impl Chart {
    pub fn svg(&self) -> String {
        let scale = self.scale();
        page(&self.title, &self.caption, (BOTTOM, 62.0), |svg| {
            self.draw_phases(svg, &scale);
            self.draw_axes(svg, &scale);
            for (at, curve) in self.curves.iter().enumerate() {
                draw_curve(svg, &scale, curve, at % COLOURS);
            }
            self.draw_labels(svg, &scale);
        })
    }

    fn scale(&self) -> Scale {
        let part_end = |part: &Vec<(f64, f64)>| part.last().map_or(0.0, |(seconds, _)| *seconds);
        let longest = |phase: usize| {
            self.curves.iter().filter_map(|curve| curve.parts.get(phase)).map(part_end).fold(0.0, f64::max)
        };
        let lengths: Vec<f64> = (0..self.phases.len()).map(longest).collect();
        let seconds: f64 = lengths.iter().sum();
        let pixels_per_second = if seconds > 0.0 { (RIGHT - LEFT) / seconds } else { 0.0 };
        let mut edges = vec![LEFT];
        for length in lengths {
            edges.push(edges.last().copied().unwrap_or(LEFT) + length * pixels_per_second);
        }
        let most = self.points().map(|(_, value)| value).fold(0.0, f64::max);
        let value_step = round_step(most / 5.0);
        Scale {
            edges,
            pixels_per_second,
            value_step,
            value_max: value_step * (most / value_step).ceil().max(1.0),
        }
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.curves.iter().flat_map(|curve| curve.parts.iter().flatten().copied())
    }

    /// Shaded columns, each with its name above; a name that would touch the one before goes a line higher.
    fn draw_phases(&self, svg: &mut String, scale: &Scale) {
        let mut lower_end = f64::MIN;
        for (at, name) in self.phases.iter().enumerate() {
            let (from, to) = (scale.edges[at], scale.edges[at + 1]);
            let class = if at % 2 == 0 { "even" } else { "odd" };
            let (width, height) = (to - from, BOTTOM - TOP);
            let _ = writeln!(
                svg,
                r#"<rect class="{class}" x="{from:.1}" y="{TOP}" width="{width:.1}" height="{height}"/>"#
            );
            let half = name.chars().count() as f64 * CHAR / 2.0;
            let middle = f64::midpoint(from, to).clamp(LEFT + half, (RIGHT - half).max(LEFT + half));
            let is_free = middle - half > lower_end;
            if is_free {
                lower_end = middle + half + CHAR;
            }
            let y = if is_free { TOP - 8.0 } else { TOP - 25.0 };
            text(svg, (middle, y), "phase", "middle", name);
        }
    }

    fn draw_axes(&self, svg: &mut String, scale: &Scale) {
        let lines = (scale.value_max / scale.value_step).round() as usize;
        for line in 0..=lines {
            let value = scale.value_step * line as f64;
            let y = scale.y(value);
            let class = if line == 0 { "axis" } else { "grid" };
            let _ = writeln!(svg, r#"<path class="{class}" d="M{LEFT} {y:.1}H{RIGHT}"/>"#);
            text(svg, (LEFT - 8.0, y + 4.0), "small", "end", &grouped(value));
        }
        let middle = f64::midpoint(TOP, BOTTOM);
        let _ = writeln!(
            svg,
            r#"<text transform="translate(20 {middle}) rotate(-90)" text-anchor="middle">{}</text>"#,
            escape(&self.values)
        );
        let total = scale.edges[self.phases.len()] - LEFT;
        let step = round_step(total / scale.pixels_per_second.max(f64::MIN_POSITIVE) / 12.0);
        for pair in scale.edges.windows(2) {
            let (from, width) = (pair[0], pair[1] - pair[0]);
            let ticks = (width / scale.pixels_per_second.max(f64::MIN_POSITIVE) / step) as usize;
            for tick in 0..=ticks {
                let seconds = tick as f64 * step;
                let x = from + seconds * scale.pixels_per_second;
                let _ = writeln!(svg, r#"<path class="axis" d="M{x:.1} {BOTTOM}v5"/>"#);
                // The last one may sit where the next phase writes its 0.
                if tick == 0 || pair[1] - x > 3.0 * CHAR || pair[1] >= RIGHT - 0.1 {
                    text(svg, (x, BOTTOM + 19.0), "small", "middle", &grouped(seconds));
                }
            }
        }
        let x = f64::midpoint(LEFT, RIGHT);
        text(svg, (x, BOTTOM + 40.0), "phase", "middle", "seconds since each phase began");
    }

    /// Name and last value beside each curve's end, the highest value of the marked phase above its peak.
    fn draw_labels(&self, svg: &mut String, scale: &Scale) {
        let ends: Vec<f64> = self.curves.iter().map(|curve| scale.y(curve.end())).collect();
        for (at, (curve, y)) in self.curves.iter().zip(apart(&ends)).enumerate() {
            let colour = format!("t{}", at % COLOURS);
            text(svg, (RIGHT + 10.0, y - 1.0), &format!("name {colour}"), "start", &curve.name);
            let end = format!("{} at the end", grouped(curve.end().round()));
            text(svg, (RIGHT + 10.0, y + 15.0), &colour, "start", &end);
            if let Some((seconds, value)) = curve.peak(self.marked) {
                let x = scale.x(self.marked, seconds);
                let label = format!("peak {}", grouped(value.round()));
                let half = label.chars().count() as f64 * CHAR / 2.0;
                let x_text = x.clamp(LEFT + half, RIGHT - half);
                let y = scale.y(value);
                let _ = writeln!(svg, r#"<circle class="{colour}" cx="{x:.1}" cy="{y:.1}" r="3.5"/>"#);
                text(svg, (x_text, (y - 9.0).max(TOP + 12.0)), &format!("name {colour}"), "middle", &label);
            }
        }
    }
}

impl Curve {
    fn end(&self) -> f64 {
        self.parts.iter().flatten().last().map_or(0.0, |(_, value)| *value)
    }

    /// The point of `phase` with the highest value, the first of equals.
    fn peak(&self, phase: usize) -> Option<(f64, f64)> {
        let points = self.parts.get(phase)?.iter().copied();
        points.reduce(|most, point| if point.1 > most.1 { point } else { most })
    }
}

impl Scale {
    fn x(&self, phase: usize, seconds: f64) -> f64 {
        self.edges[phase] + seconds * self.pixels_per_second
    }

    fn y(&self, value: f64) -> f64 {
        BOTTOM - value / self.value_max * (BOTTOM - TOP)
    }
}

/// Each phase a line; between them, where another curve took longer, a dotted one.
fn draw_curve(svg: &mut String, scale: &Scale, curve: &Curve, colour: usize) {
    let mut before: Option<(f64, f64)> = None;
    for (phase, part) in curve.parts.iter().enumerate() {
        let placed: Vec<(f64, f64)> =
            part.iter().map(|(seconds, value)| (scale.x(phase, *seconds), scale.y(*value))).collect();
        let (Some(first), Some(last)) = (placed.first(), placed.last()) else { continue };
        if let Some((x, y)) = before.filter(|(x, _)| first.0 - x > 1.0) {
            let _ = writeln!(
                svg,
                r#"<path class="curve wait s{colour}" d="M{x:.1} {y:.1}L{:.1} {:.1}"/>"#,
                first.0, first.1
            );
        }
        let mut line = String::new();
        for (at, (x, y)) in placed.iter().enumerate() {
            let _ = write!(line, "{}{x:.1} {y:.1}", if at == 0 { "M" } else { "L" });
        }
        let _ = writeln!(svg, r#"<path class="curve s{colour}" d="{line}"/>"#);
        before = Some(*last);
    }
}

/// Moves positions down, and the lowest back up, until none is closer than [`LABEL_STEP`] to the next.
fn apart(wanted: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut placed = wanted.to_vec();
    let mut limit = TOP + 12.0;
    for at in &order {
        placed[*at] = placed[*at].max(limit);
        limit = placed[*at] + LABEL_STEP;
    }
    let mut limit = BOTTOM - 12.0;
    for at in order.iter().rev() {
        placed[*at] = placed[*at].min(limit);
        limit = placed[*at] - LABEL_STEP;
    }
    placed
}

/// The smallest of 1, 2, 5, 10, 20, 50 … that is not below `least`; 1 when that says nothing.
fn round_step(least: f64) -> f64 {
    if !least.is_normal() || least <= 1.0 {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0].map(|digit| digit * power).into_iter().find(|step| *step >= least).unwrap_or(10.0 * power)
}

/// A whole number with a narrow space before every three digits.
pub fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        let left = digits.len() - at;
        if at > 0 && left.is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let curve = |name: &str, parts: &[&[(f64, f64)]]| Curve {
            name: name.into(),
            parts: parts.iter().map(|part| part.to_vec()).collect(),
        };
        Chart {
            title: "memory <of> \"a\" & b".into(),
            values: "resident, MiB".into(),
            phases: ["load", "4 LISTs at once", "after"].map(str::to_owned).to_vec(),
            marked: 1,
            curves: vec![
                curve("a", &[&[(0.0, 0.0), (20.0, 100.0)], &[(0.0, 100.0), (10.0, 120.0)], &[(0.0, 110.0)]]),
                curve(
                    "b",
                    &[
                        &[(0.0, 50.0), (40.0, 900.0)],
                        &[(0.0, 900.0), (50.0, 1900.0)],
                        &[(0.0, 1800.0), (10.0, 1500.0)],
                    ],
                ),
            ],
            caption: vec!["a machine".into(), "word ".repeat(60).trim_end().to_owned()],
        }
    }

    /// The attribute of each tag that begins with `tag`.
    fn attributes(svg: &str, tag: &str, name: &str) -> Vec<String> {
        let value =
            |line: &str| Some(line.split_once(&format!(" {name}=\""))?.1.split('"').next()?.to_owned());
        svg.lines().filter(|line| line.starts_with(tag)).filter_map(value).collect()
    }

    #[test]
    fn it_is_one_well_formed_element_that_refers_to_nothing_outside() {
        let svg = chart().svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
        for outside in ["href", "url(", "@import", "@font-face", "<script", "<image"] {
            assert!(!svg.contains(outside), "{outside}");
        }
        for tag in ["text", "title", "style", "svg"] {
            let opened = svg.matches(&format!("<{tag} ")).count() + svg.matches(&format!("<{tag}>")).count();
            assert_eq!(opened, svg.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        assert!(svg.contains("memory &lt;of&gt; &quot;a&quot; &amp; b"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn it_has_its_own_background_light_and_dark() {
        let svg = chart().svg();
        assert!(svg.contains(r#"class="back""#) && svg.contains("prefers-color-scheme:dark"), "{svg}");
    }

    #[test]
    fn a_column_is_as_wide_as_the_longest_curve_needs() {
        let svg = chart().svg();
        let widths: Vec<f64> =
            attributes(&svg, "<rect class=\"even\"", "width").iter().map(|w| w.parse().unwrap()).collect();
        // 40, 50 and 10 s on 694 px; the middle one is shaded otherwise.
        assert_eq!(widths, [277.6, 69.4]);
        assert_eq!(attributes(&svg, "<rect class=\"odd\"", "width"), ["347.0"]);
    }

    #[test]
    fn a_curve_goes_through_its_points_and_waits_dotted_for_the_slower_one() {
        let svg = chart().svg();
        // 0 to 2000 on 348 px: 100 is 17.4 px above the axis.
        assert_eq!(
            attributes(&svg, "<path class=\"curve s0\"", "d"),
            ["M76.0 440.0L214.8 422.6", "M353.6 422.6L423.0 419.1", "M700.6 420.9"]
        );
        let dotted = attributes(&svg, "<path class=\"curve wait s0\"", "d");
        assert_eq!(dotted, ["M214.8 422.6L353.6 422.6", "M423.0 419.1L700.6 420.9"]);
        assert_eq!(attributes(&svg, "<path class=\"curve wait s1\"", "d"), [""; 0]);
    }

    #[test]
    fn phases_axes_curves_and_peaks_are_labelled() {
        let svg = chart().svg();
        for text in
            ["load", "4 LISTs at once", "after", "resident, MiB", "seconds since each phase began", "a", "b"]
        {
            assert!(svg.contains(&format!(">{text}</text>")), "{text}");
        }
        for text in
            ["peak 120", "peak 1\u{202f}900", "110 at the end", "1\u{202f}500 at the end", "a machine"]
        {
            assert!(svg.contains(&format!(">{text}</text>")), "{text}");
        }
        assert!(svg.lines().all(|line| line.contains("<style>") || line.len() < 400), "{svg}");
    }

    #[test]
    fn the_peak_marked_is_that_of_the_marked_phase() {
        let mut chart = chart();
        chart.marked = 2;
        let svg = chart.svg();
        assert!(svg.contains(">peak 110</text>") && svg.contains(">peak 1\u{202f}800</text>"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 2);
    }

    #[test]
    fn a_chart_of_nothing_is_still_a_chart() {
        let mut empty = chart();
        empty.curves.clear();
        let svg = empty.svg();
        assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        empty.curves.push(Curve { name: "flat".into(), parts: vec![vec![(0.0, 0.0)]; 3] });
        assert!(!empty.svg().contains("NaN"), "{}", empty.svg());
    }

    #[test]
    fn labels_keep_their_distance_and_stay_inside() {
        assert_eq!(apart(&[200.0, 300.0]), [200.0, 300.0]);
        assert_eq!(apart(&[300.0, 290.0]), [328.0, 290.0]);
        assert_eq!(apart(&[440.0, 439.0]), [428.0, 390.0]);
    }

    #[test]
    fn steps_are_round_and_numbers_grouped() {
        assert_eq!(
            [0.0, 0.3, 1.5, 3.0, 7.0, 20.0, 21.0, 380.0].map(round_step),
            [1.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 500.0]
        );
        assert_eq!(grouped(0.0), "0");
        assert_eq!(grouped(1_234_567.0), "1\u{202f}234\u{202f}567");
    }
}
