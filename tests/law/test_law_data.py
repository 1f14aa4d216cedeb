"""Limits, classes, mitigations, severities and rules, against figures written out."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from stream_validator.law.catalogue import Catalogue, load

DAY = dt.date.fromisoformat


@pytest.fixture(scope="module")
def law() -> Catalogue:
    return load()


def test_the_rules_that_exist(law: Catalogue) -> None:
    expected = "A01 A02 A03 A04 A05 A06 A07 F01 F02 F03 F04 F05 F06 F12 F13 C01 C02 C03 T01 T02 T03 T04 T05 "
    expected += "P01 P02 P03 V01 V02 V03 D01 D02 D03 D04 D05 D06 D07 D08"
    assert list(law.rules) == expected.split()
    assert {rule.id for rule in law.rules.values() if not rule.alerts} == {"A04", "C03", "V03", "D01"}


def test_what_a_rule_fires_as(law: Catalogue) -> None:
    by_outcome = {
        outcome: {rule.id for rule in law.rules.values() if rule.fires_as == outcome and rule.alerts}
        for outcome in ("violation", "suspicion", "exception")
    }
    assert by_outcome["exception"] == {"T01"}
    assert by_outcome["violation"] == {
        "A01",
        "A02",
        "A03",
        "F01",
        "F02",
        "F03",
        "F04",
        "F05",
        "F12",
        "F13",
        "C01",
        "T02",
        "T03",
        "P01",
        "P02",
        "D02",
        "D03",
        "D04",
        "D05",
        "D07",
    }
    assert by_outcome["suspicion"] == {
        "A05",
        "A06",
        "A07",
        "F06",
        "C02",
        "T04",
        "T05",
        "P03",
        "V01",
        "V02",
        "D06",
        "D08",
    }


def test_every_rule_speaks_both_languages(law: Catalogue) -> None:
    for rule in law.rules.values():
        for text in (rule.title, rule.text, rule.subject):
            assert text.pt
            assert text.en
            assert text.pt != text.en
        assert len(rule.title.pt) <= 70
        assert len(rule.text.pt) > 60


def test_severities(law: Catalogue) -> None:
    assert law.severity("C01", "violation") == "high"
    assert law.severity("D03", "violation") == "medium"
    assert law.severity("D08", "suspicion") == "low"
    assert law.severity("C02", "suspicion") == "low"
    assert law.severity("T01", "exception") == "info"
    with pytest.raises(KeyError):
        law.severity("T01", "pass")


def test_limits(law: Catalogue) -> None:
    limits = law.limits
    assert (limits.p01_max_cylinder_kg, limits.t04_max_cylinder_kg) == (Decimal(90), Decimal(13))
    assert limits.p03_tolerance == limits.kg_disagreement == Decimal("0.005")
    assert (limits.v_gross_weight_kg, limits.v_gross_weight_factor) == (Decimal(16000), Decimal(2))
    assert limits.v03_limited_kg == Decimal(333)
    assert limits.legal_amazon == {"AC", "AM", "AP", "MA", "MT", "PA", "RO", "RR", "TO"}


def test_dates_of_the_limits_are_those_of_the_norms(law: Catalogue) -> None:
    limits = law.limits
    resale, amended = law.norms["ANP51/2016"], {one.by: one.from_ for one in law.norms["ANP51/2016"].amendments}
    assert limits.resale297_from == law.norms["ANP297/2003"].from_ == DAY("2003-11-20")
    assert limits.resale51_from == limits.conversion_day == limits.capacity_from == resale.from_ == DAY("2016-12-02")
    assert limits.amended709_from == amended["ANP709/2017"] == DAY("2017-11-16")
    assert limits.trrni_buyer_from == amended["ANP746/2018"] == DAY("2018-08-31")
    assert limits.delivery_from == law.norms["ANP26/2015"].binds_from == DAY("2015-11-25")
    assert law.rules["C01"].windows[0].from_ == limits.capacity_from
    assert law.rules["T01"].windows[0].from_ == law.rules["T02"].windows[0].to == limits.trrni_buyer_from
    assert law.rules["V01"].windows[0].from_ == limits.delivery_from
    assert law.rules["F12"].windows[0].to == law.rules["F01"].windows[0].from_ == limits.resale51_from


def test_limits_by_day(law: Catalogue) -> None:
    for day in (DAY("1999-01-01"), DAY("2003-11-20"), DAY("2016-12-02"), DAY("2026-01-01")):
        assert law.limits_on(day).p01_max_cylinder_kg == Decimal(90)


def test_a_limit_that_changes_has_the_value_of_its_day() -> None:
    from stream_validator.law.loader import packaged

    contents = packaged()
    limits = contents["limits.toml"].decode()
    contents["limits.toml"] = limits.replace(
        'value = "90"\nfrom = 2016-12-02', 'value = "100"\nfrom = 2016-12-02'
    ).encode()
    changed = load(contents)
    assert changed.limits_on(DAY("2016-12-01")).p01_max_cylinder_kg == Decimal(90)
    assert changed.limits_on(DAY("2016-12-02")).p01_max_cylinder_kg == Decimal(100)
    assert changed.limits.p01_max_cylinder_kg == Decimal(100)


def test_every_value_has_its_source(law: Catalogue) -> None:
    for parameter in law.parameters.values():
        for window in parameter.values:
            assert window.reference
            assert window.last_checked >= dt.date(2026, 12, 1)
    unsure = {name for name, one in law.parameters.items() if not all(window.confirmed for window in one.values)}
    assert unsure == {"delivery_from"}
    policy = {name for name, one in law.parameters.items() if one.values[0].source == "policy"}
    assert policy == {"p03_tolerance", "kg_disagreement", "v_gross_weight_factor"}


def test_class_tables(law: Catalogue) -> None:
    labels = ("I", "II", "III", "IV", "V", "VI", "VII", "Especial")
    old = [law.class_kg("DNC27", label) for label in labels]
    new = [law.class_kg("NBR15514", label) for label in labels]
    assert old == [*map(Decimal, (520, 1560, 6240, 24960, 49920, 99840)), None, None]
    assert new == [*map(Decimal, (520, 1560, 6240, 12480, 24960, 49920, 99840)), None]
    assert law.class_kg("NOTHING", "I") is None
    assert law.class_tables["DNC27"]["Especial"] == law.class_tables["NBR15514"]["Especial"] == Decimal(99840)
    assert law.class_tables["NBR15514"]["IV"] == Decimal(12480)


def test_class_bounds(law: Catalogue) -> None:
    assert law.class_bounds("NBR15514", "II") == (Decimal(1560), Decimal(1560))
    assert law.class_bounds("DNC27", "Especial") == (Decimal(99840), None)
    assert law.class_bounds("DNC27", "VII") is None
    assert law.class_bounds("NOTHING", "I") is None


def test_m33(law: Catalogue) -> None:
    m33 = law.mitigations["M33"]
    assert m33.applies("F01", DAY("2016-12-02"))
    assert not m33.applies("F01", DAY("2016-12-01"))
    assert not m33.applies("F04", DAY("2020-01-01"))
    assert m33.days_on(DAY("2017-11-15"), "vinculado") == 45
    assert m33.days_on(DAY("2017-11-16"), "vinculado") == 60
    assert m33.days_on(DAY("2017-11-16"), "independente") == 45
    assert m33.days_on(DAY("2017-11-16")) == 45
    assert m33.outcome(DAY("2021-11-30")) == "exception"
    assert m33.outcome(DAY("2021-12-01")) == "suspicion"
    assert not m33.until_confirmed


def test_m33_becomes_a_violation_once_its_end_is_confirmed() -> None:
    from stream_validator.law.loader import packaged

    contents = packaged()
    contents["mitigations.toml"] = contents["mitigations.toml"].replace(
        b"until_confirmed = false", b"until_confirmed = true"
    )
    m33 = load(contents).mitigations["M33"]
    assert m33.outcome(DAY("2021-11-30")) == "exception"
    assert m33.outcome(DAY("2021-12-01")) == "violation"


def test_m29_ends_180_days_after_2017_11_16(law: Catalogue) -> None:
    m29 = law.mitigations["M29"]
    assert m29.to == DAY("2017-11-16") + dt.timedelta(days=181) == DAY("2018-05-16")
    assert m29.applies("F03", DAY("2018-05-15"))
    assert not m29.applies("F03", DAY("2018-05-16"))
    assert m29.outcome(DAY("2018-05-15")) == "suspicion"
    assert m29.authorised_before == DAY("2016-12-02")
    assert m29.days_on(DAY("2018-01-01")) is None


def test_m8(law: Catalogue) -> None:
    m8 = law.mitigations["M8"]
    assert m8.rules == ("F12", "F13")
    assert m8.days_on(DAY("2016-12-01")) == 30
    assert m8.excludes_changes_on == (DAY("2016-12-02"),)
    assert m8.outcome(DAY("2010-01-01")) == "exception"
    assert not m8.applies("F12", DAY("2016-12-02"))


def test_m17(law: Catalogue) -> None:
    m17 = law.mitigations["M17"]
    assert m17.rules == ("A01", "A02", "A03")
    assert m17.statuses == ("nobody", "not_yet")
    assert m17.ends_for("SP") == m17.ends_for(None) == DAY("2009-01-01")
    assert m17.schedule is not None
    assert not m17.schedule.confirmed
    assert m17.outcome(DAY("2008-12-31")) == "suspicion"
    assert law.mitigations["M8"].ends_for("SP") is None


def test_mitigations_stand_in_the_order_of_application(law: Catalogue) -> None:
    assert list(law.mitigations) == ["M33", "M29", "M8", "M17"]


def test_the_hash_ignores_prose_but_not_figures(law: Catalogue) -> None:
    from stream_validator.law.loader import packaged

    contents = packaged()
    coverage = contents["norms/anp-51-2016.toml"].replace(b"Purpose of the norm", b"What it is for")
    assert coverage != contents["norms/anp-51-2016.toml"]
    assert load(contents | {"norms/anp-51-2016.toml": coverage}).hash == law.hash == load().hash
    figures = contents["limits.toml"].replace(b'value = "333"', b'value = "334"')
    assert load(contents | {"limits.toml": figures}).hash != law.hash
