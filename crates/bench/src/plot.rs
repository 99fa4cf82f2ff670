//! Small charts of what a figure comes to as something grows, side by side in one SVG file that needs nothing
//! else.
//!
//! In: a [`Plot`]. Out: SVG text, the same for the same plot. Both axes are logarithmic: a straight line is a
//! power, and one that lies flat costs the same whatever there is. Never: a point that was not given, or one
//! that is not above 0.

use std::fmt::Write;

use crate::page::{COLOURS, MARGIN, WIDTH, page, text};

/// What to draw.
#[derive(Clone, Debug)]
pub struct Plot {
    pub title: String,
    pub panels: Vec<Panel>,
    /// Names of the curves, in the order that the panels have them.
    pub names: Vec<String>,
    /// Small print below; long lines are wrapped.
    pub caption: Vec<String>,
}

/// One chart.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What a value is and its unit.
    pub values: String,
    /// What grows.
    pub along: String,
    /// For each name the points, in the order of what grows. Empty where nothing was measured.
    pub curves: Vec<Vec<(f64, f64)>>,
}

/// Upper and lower edge of the panels.
const TOP: f64 = 96.0;
const BOTTOM: f64 = 300.0;
/// What a panel has to the left of its plot for numbers, and to the right of it.
const NUMBERS: f64 = 46.0;
const GAP: f64 = 14.0;

/// Powers of ten from one end of an axis to the other.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Decades {
    from: i32,
    to: i32,
}

impl Plot {
    pub fn svg(&self) -> String {
        page(&self.title, &self.caption, (BOTTOM, 66.0), |svg| {
            self.draw_names(svg);
            let width = (WIDTH - 2.0 * MARGIN) / self.panels.len().max(1) as f64;
            for (at, panel) in self.panels.iter().enumerate() {
                let left = MARGIN + width * at as f64;
                panel.draw(svg, left + NUMBERS, left + width - GAP);
            }
        })
    }

    /// Which colour is whose, below the title.
    fn draw_names(&self, svg: &mut String) {
        let mut x = MARGIN;
        for (at, name) in self.names.iter().enumerate() {
            let colour = at % COLOURS;
            let _ = writeln!(svg, r#"<path class="curve s{colour}" d="M{x:.1} 54h22"/>"#);
            text(svg, (x + 28.0, 58.0), &format!("name t{colour}"), "start", name);
            x += 60.0 + name.chars().count() as f64 * 8.0;
        }
    }
}

impl Panel {
    fn draw(&self, svg: &mut String, left: f64, right: f64) {
        let points = || self.curves.iter().flatten().filter(|(x, y)| *x > 0.0 && *y > 0.0);
        let across = Decades::around(points().map(|(x, _)| *x));
        let up = Decades::around(points().map(|(_, y)| *y));
        let place = |(x, y): (f64, f64)| {
            (left + across.share(x) * (right - left), BOTTOM - up.share(y) * (BOTTOM - TOP))
        };
        text(svg, (left, TOP - 12.0), "phase", "start", &self.values);
        for power in up.from..=up.to {
            let (_, y) = place((1.0, 10f64.powi(power)));
            let class = if power == up.from { "axis" } else { "grid" };
            let _ = writeln!(svg, r#"<path class="{class}" d="M{left:.1} {y:.1}H{right:.1}"/>"#);
            text(svg, (left - 6.0, y + 4.0), "small", "end", &power_of_ten(power));
        }
        for power in across.from..=across.to {
            let (x, _) = place((10f64.powi(power), 1.0));
            let _ = writeln!(svg, r#"<path class="axis" d="M{x:.1} {BOTTOM}v5"/>"#);
            text(svg, (x, BOTTOM + 19.0), "small", "middle", &power_of_ten(power));
        }
        text(svg, (f64::midpoint(left, right), BOTTOM + 40.0), "phase", "middle", &self.along);
        for (at, curve) in self.curves.iter().enumerate() {
            let placed: Vec<(f64, f64)> =
                curve.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0).map(|point| place(*point)).collect();
            draw_curve(svg, &placed, at % COLOURS);
        }
    }
}

fn draw_curve(svg: &mut String, placed: &[(f64, f64)], colour: usize) {
    let mut line = String::new();
    for (at, (x, y)) in placed.iter().enumerate() {
        let _ = write!(line, "{}{x:.1} {y:.1}", if at == 0 { "M" } else { "L" });
        let _ = writeln!(svg, r#"<circle class="t{colour}" cx="{x:.1}" cy="{y:.1}" r="3"/>"#);
    }
    if placed.len() > 1 {
        let _ = writeln!(svg, r#"<path class="curve s{colour}" d="{line}"/>"#);
    }
}

impl Decades {
    /// The fewest that hold all of `values`, and one at least.
    fn around(values: impl Iterator<Item = f64>) -> Decades {
        let (mut least, mut most) = (f64::MAX, f64::MIN);
        for value in values {
            (least, most) = (least.min(value), most.max(value));
        }
        if least > most {
            return Decades { from: 0, to: 1 };
        }
        let from = least.log10().floor() as i32;
        Decades { from, to: (most.log10().ceil() as i32).max(from + 1) }
    }

    /// Where `value` is between the ends, from 0 to 1.
    fn share(self, value: f64) -> f64 {
        (value.log10() - f64::from(self.from)) / f64::from(self.to - self.from)
    }
}

/// `0.01`, `1`, `100`, `10k`, `1M`.
fn power_of_ten(power: i32) -> String {
    match power {
        9.. => format!("{}G", 10_i64.pow((power - 9) as u32)),
        6..=8 => format!("{}M", 10_i64.pow((power - 6) as u32)),
        4..=5 => format!("{}k", 10_i64.pow((power - 3) as u32)),
        0..=3 => format!("{}", 10_i64.pow(power as u32)),
        _ => format!("{:.*}", power.unsigned_abs() as usize, 10f64.powi(power)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        let panel = Panel {
            values: "CPU, ms".into(),
            along: "objects".into(),
            curves: vec![
                vec![(1_000.0, 1.0), (10_000.0, 10.0), (1e6, 1_000.0)],
                vec![(1_000.0, 0.0), (10_000.0, 90.0)],
            ],
        };
        let names = vec!["a".into(), "b & c".into()];
        Plot { title: "t <1>".into(), panels: vec![panel.clone(), panel], names, caption: vec!["how".into()] }
    }

    #[test]
    fn it_is_whole_svg_with_nothing_from_outside_light_and_dark() {
        let svg = plot().svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
        for outside in ["href", "url(", "@import", "<script", "<image", "NaN", "inf"] {
            assert!(!svg.contains(outside), "{outside}");
        }
        assert!(svg.contains(r#"class="back""#) && svg.contains("prefers-color-scheme:dark"), "{svg}");
        assert!(
            svg.contains("b &amp; c") && svg.contains("t &lt;1&gt;") && svg.contains(">how</text>"),
            "{svg}"
        );
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    }

    #[test]
    fn equal_factors_are_equal_distances() {
        let svg = plot().svg();
        // Panels of 456 px, of which 396 are plot; three decades each way.
        assert!(svg.contains(r#"d="M70.0 300.0L202.0 232.0L466.0 96.0""#), "{svg}");
    }

    #[test]
    fn a_point_that_has_no_logarithm_is_left_out() {
        let svg = plot().svg();
        // Three of one curve and one of the other, in two panels.
        assert_eq!(svg.matches("<circle").count(), 8);
    }

    #[test]
    fn an_axis_has_the_decades_of_its_values() {
        let around = |values: &[f64]| Decades::around(values.iter().copied());
        assert_eq!(around(&[3.0, 250.0]), Decades { from: 0, to: 3 });
        assert_eq!(around(&[10.0]), Decades { from: 1, to: 2 });
        assert_eq!(around(&[]), Decades { from: 0, to: 1 });
        assert_eq!(around(&[0.02, 0.5]), Decades { from: -2, to: 0 });
    }

    #[test]
    fn powers_are_short() {
        let all: Vec<String> = [-2, -1, 0, 3, 4, 5, 6, 7, 9].map(power_of_ten).into();
        assert_eq!(all, ["0.01", "0.1", "1", "1000", "10k", "100k", "1M", "10M", "1G"]);
    }
}
