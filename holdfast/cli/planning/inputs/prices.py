"""Price of an instance-hour: given, of a training plan, or an offer of the price list."""

from collections.abc import Callable

from holdfast.catalog.goodput import Price
from holdfast.cli.planning.options import Options
from holdfast.planner.model import PlanError


def price_of(
    options: Options, *, instance_type: str | None, prices: Callable[[], tuple[Price, ...]]
) -> tuple[float | None, str]:
    """Dollars per instance-hour and their source; or None and how to give a price."""
    fee, hours = options.training_plan_fee_usd, options.training_plan_hours
    if (fee is None) != (hours is None):
        raise PlanError("got only one of --training-plan-fee and --training-plan-hours; allowed: both")
    if fee is not None and hours is not None:
        if options.price is not None:
            raise PlanError("got --price and --training-plan-fee; allowed: one of them")
        if fee < 0 or hours <= 0:
            raise PlanError(
                f"the training plan is ${fee:g} for {hours:g} instance-hours; allowed: 0 or more for more than 0; "
                f"give the upfront fee of the offering, and its instances times its hours"
            )
        return fee / hours, f"training plan: ${fee:,.0f} for {hours:,.0f} instance-hours"
    if options.price is None:
        return None, (
            "no price: give --price with dollars per instance-hour, --price ec2-on-demand for EC2's list as a proxy, "
            "or --training-plan-fee and --training-plan-hours"
        )
    try:
        usd = float(options.price)
    except ValueError:
        return _offer(options.price, instance_type=instance_type, rows=prices())
    if not 0 <= usd < float("inf"):
        raise PlanError(f"the price is {options.price}; allowed: 0 or more; give dollars per instance-hour")
    return usd, f"${usd:,.2f} per instance-hour: given"


def _offer(name: str, *, instance_type: str | None, rows: tuple[Price, ...]) -> tuple[float, str]:
    offers = sorted({row.offer for row in rows})
    if name not in offers:
        raise PlanError(f"the price is '{name}'; allowed: dollars per instance-hour, or one of {', '.join(offers)}")
    for row in rows:
        if row.offer == name and row.instance_type == instance_type:
            proxy, usd = f", a proxy ({row.note})" if row.proxy else "", row.usd_per_instance_hour
            return usd, f"${usd:,.2f} per instance-hour in {row.region} on {row.date}{proxy}: {row.source}"
    known = ", ".join(row.instance_type for row in rows if row.offer == name)
    raise PlanError(
        f"offer '{name}' has no price for {instance_type or 'an unnamed instance type'}; it has {known}; "
        f"give --price in dollars per instance-hour"
    )
