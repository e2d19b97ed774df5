//! `--price`: what an hour of everything that takes part costs.

use dyno_frontend::exit::Failure;

/// The sum of `role=price,role=price`, per hour.
pub fn per_hour(text: &str) -> Result<f64, Failure> {
    let mut sum = 0.0;
    for part in text.split(',') {
        let value = part.split_once('=').and_then(|(_, value)| value.trim().parse::<f64>().ok());
        match value.filter(|value| value.is_finite() && *value > 0.0) {
            Some(value) => sum += value,
            None => {
                let message = "expected ROLE=PRICE,... with prices above 0, such as server=0.34,client=0.17";
                return Err(Failure::usage(format!("--price {part}: {message}")));
            }
        }
    }
    Ok(sum)
}
