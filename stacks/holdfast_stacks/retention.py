"""How long logs are kept: from a number of days to the CDK's name for it."""

from aws_cdk import aws_logs as logs

_Days = logs.RetentionDays
_NAMES = {
    1: _Days.ONE_DAY,
    3: _Days.THREE_DAYS,
    5: _Days.FIVE_DAYS,
    7: _Days.ONE_WEEK,
    14: _Days.TWO_WEEKS,
    30: _Days.ONE_MONTH,
    60: _Days.TWO_MONTHS,
    90: _Days.THREE_MONTHS,
    120: _Days.FOUR_MONTHS,
    150: _Days.FIVE_MONTHS,
    180: _Days.SIX_MONTHS,
    365: _Days.ONE_YEAR,
    400: _Days.THIRTEEN_MONTHS,
    545: _Days.EIGHTEEN_MONTHS,
    731: _Days.TWO_YEARS,
    1096: _Days.THREE_YEARS,
    1827: _Days.FIVE_YEARS,
    2192: _Days.SIX_YEARS,
    2557: _Days.SEVEN_YEARS,
    2922: _Days.EIGHT_YEARS,
    3288: _Days.NINE_YEARS,
    3653: _Days.TEN_YEARS,
}


def retention(days: int) -> logs.RetentionDays:
    return _NAMES[days]
