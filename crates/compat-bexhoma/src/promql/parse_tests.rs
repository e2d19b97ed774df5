use super::*;

fn number(value: f64) -> Box<Expr> {
    Box::new(Expr::Number(value))
}

fn series(name: &str, window: bool) -> Expr {
    Expr::Series { name: name.into(), matchers: Vec::new(), window }
}

#[test]
fn products_bind_closer_than_sums_and_both_from_the_left() {
    let of = |sign: char, a: Box<Expr>, b: Box<Expr>| Box::new(Expr::Binary(sign, a, b));
    for (text, expected) in [
        ("1 - 2 + 3", of('+', of('-', number(1.0), number(2.0)), number(3.0))),
        ("1+2*3", of('+', number(1.0), of('*', number(2.0), number(3.0)))),
        ("8/4/2", of('/', of('/', number(8.0), number(4.0)), number(2.0))),
        ("(1 + 2) * .5", of('*', of('+', number(1.0), number(2.0)), number(0.5))),
        (" - 1.5 - -2 ", of('-', of('-', number(0.0), number(1.5)), of('-', number(0.0), number(2.0)))),
    ] {
        assert_eq!(parse(text).as_ref(), Ok(&*expected), "{text}");
    }
}

#[test]
fn metrics_have_labels_and_windows() {
    let matcher =
        |label: &str, equal: bool, value: &str| Matcher { label: label.into(), equal, value: value.into() };
    let both = vec![matcher("b", true, "it's"), matcher("c_1", false, "")];
    for text in ["a:b.c{b=\"it's\",c_1!=''}[5m]", " a:b.c { b = \"it's\" , c_1 != '' , } [ 5m ] "] {
        let expected = Expr::Series { name: "a:b.c".into(), matchers: both.clone(), window: true };
        assert_eq!(parse(text), Ok(expected), "{text}");
    }
    assert_eq!((parse("sum{}"), parse("rate")), (Ok(series("sum", false)), Ok(series("rate", false))));
    let rate = Expr::Call("rate".into(), Box::new(series("x", true)));
    assert_eq!(parse("rate(x[1m])"), Ok(rate.clone()));
    assert_eq!(parse("avg ( rate( x[1m] ) )"), Ok(Expr::Call("avg".into(), Box::new(rate))));
}

#[test]
fn what_cannot_be_read_is_told_with_its_place() {
    for (text, why) in [
        ("1 2", "\"2\": is not evaluated here"),
        ("1.2.3", "\"1.2.3\" is no number"),
        ("1 + $x", "\"$x\": is not evaluated here"),
        ("(1", "\"\": expected ')'"),
        ("sum(x]", "\"]\": expected ')'"),
        ("x[5m", "a window is not closed by ']'"),
        ("x[]", "[]: expected the length of a window, such as [5m]; subqueries are not evaluated here"),
        ("x[5]", "[5]: expected the length of a window, such as [5m]; subqueries are not evaluated here"),
        (
            "x[1h:5m]",
            "[1h:5m]: expected the length of a window, such as [5m]; subqueries are not evaluated here",
        ),
        ("x{a}", "\"}\": expected a sign after a label"),
        ("x{a=b}", "expected a text after a label"),
        ("x{a=\"b}", "a text is not closed"),
        ("x{a=\"b\" c=\"d\"}", "\"c=\\\"d\\\"}\": expected a comma or '}'"),
        ("x{a!~\"b\"}", "a!~: patterns are not evaluated here"),
        ("sum(x[5m])", "sum: expected no window, such as [5m]"),
        ("irate(x)", "irate: expected a window, such as [5m]"),
        ("abs(x)", "abs: of functions only sum, max, min, avg and rate, irate, increase are evaluated here"),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), why, "{text}");
    }
    let shown = parse(&format!("1 {}", "y".repeat(50))).unwrap_err();
    assert_eq!(shown, SyntaxError::NotEvaluated("y".repeat(30)));
}

#[test]
fn forty_brackets_in_each_other_are_read_and_no_more() {
    for (open, close) in [("(", ")"), ("-", ""), ("sum(", ")")] {
        let of = |depth: usize| parse(&format!("{}x{}", open.repeat(depth), close.repeat(depth)));
        assert!(of(EXPRESSION_DEPTH).is_ok(), "{open}");
        assert_eq!(of(EXPRESSION_DEPTH + 1), Err(SyntaxError::TooDeep), "{open}");
    }
}
