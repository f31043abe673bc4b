//! Numbers with units, as the command line takes them. It must not know what they are for.

use std::time::Duration;

/// A number with a unit: `10ms`, `1.5s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("`{text}` is no time: write a number and a unit, like 10ms, 1.5s or 2m (units: us, ms, s, m, h)");
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let number: f64 = text[..unit_at].parse().map_err(|_| wrong())?;
    let unit_s = match &text[unit_at..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let time = Duration::try_from_secs_f64(number * unit_s).map_err(|_| wrong())?;
    if time.is_zero() { Err(format!("`{text}` is no time at all: it must be above zero")) } else { Ok(time) }
}

/// A number of bytes with a unit: `200MiB`, `1.5GB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "`{text}` is no size: write a number and a unit, like 200MiB or 1.5GB (units: B, kB, MB, GB, KiB, MiB, GiB)"
        )
    };
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let number: f64 = text[..unit_at].parse().map_err(|_| wrong())?;
    let unit_bytes = match &text[unit_at..] {
        "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => f64::from(1u32 << 10),
        "MiB" => f64::from(1u32 << 20),
        "GiB" => f64::from(1u32 << 30),
        _ => return Err(wrong()),
    };
    // Saturates; nobody writes that fast.
    let bytes = (number * unit_bytes) as u64;
    if bytes == 0 { Err(format!("`{text}` is nothing at all: it must be above zero")) } else { Ok(bytes) }
}

/// A rate of writing: a slower one would look like a job that hangs, since its end waits for the last checkpoint.
pub fn rate(text: &str) -> Result<u64, String> {
    let bytes = bytes(text)?;
    if bytes < 64 << 10 { Err(format!("`{text}` a second is too slow: at least 64KiB are needed")) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "10", "s", "1.2.3s", "10 ms", "-1s", "0s", "1e9s", "9999999999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("200MiB"), Ok(200 << 20));
        assert_eq!(bytes("1.5GB"), Ok(1_500_000_000));
        assert_eq!(bytes("512B"), Ok(512));
        for wrong in ["", "10", "MiB", "1.2.3kB", "10 MB", "-1kB", "0GiB", "0.1B", "5mb"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn nothing_is_written_byte_by_byte() {
        assert_eq!((rate("64KiB"), rate("500kB")), (Ok(64 << 10), Ok(500_000)));
        for wrong in ["1B", "65535B", "63KiB", "5mb"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
