"""The Python face: what the command line and other programs call. The only caller of probe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vllm_advisor.api.calibrating import calibrate, calibration_report, write_calibration
    from vllm_advisor.api.calibration_report import CalibrationReport
    from vllm_advisor.api.check_report import CheckReport
    from vllm_advisor.api.checking import check
    from vllm_advisor.api.estimate_report import estimate_report
    from vllm_advisor.api.estimating import EstimateReport, estimate
    from vllm_advisor.api.explaining import explain
    from vllm_advisor.api.facts import profile_names, profile_text
    from vllm_advisor.api.fixing import Fixes, fixes_of
    from vllm_advisor.api.hardware import probe
    from vllm_advisor.api.observe_report import ObserveReport
    from vllm_advisor.api.observing import observe, write_workload
    from vllm_advisor.api.planning import PlanReport, plan, read_report, write_plan
    from vllm_advisor.api.replaying import estimate_trace
    from vllm_advisor.api.reporting import (
        StartupReport,
        report_pod,
        report_startup,
        write_memory_calibration,
    )
    from vllm_advisor.api.routing import RouteReport, route, route_trace
    from vllm_advisor.api.rule_choice import CheckOptions, check_options, find_config
    from vllm_advisor.api.rule_list import list_rules
    from vllm_advisor.api.size_report import size_report
    from vllm_advisor.api.sizing import SizeReport, size
    from vllm_advisor.api.traffic_report import TrafficReport
    from vllm_advisor.api.verifying import (
        NeedleResult,
        RoutesResult,
        needle_plot,
        verify_needle,
        verify_routes,
        write_plot,
    )

_WHERE = {
    "CalibrationReport": "calibration_report",
    "CheckOptions": "rule_choice",
    "CheckReport": "check_report",
    "EstimateReport": "estimating",
    "Fixes": "fixing",
    "NeedleResult": "verifying",
    "ObserveReport": "observe_report",
    "PlanReport": "planning",
    "RoutesResult": "verifying",
    "RouteReport": "routing",
    "SizeReport": "sizing",
    "StartupReport": "reporting",
    "TrafficReport": "traffic_report",
    "calibrate": "calibrating",
    "calibration_report": "calibrating",
    "check": "checking",
    "check_options": "rule_choice",
    "estimate": "estimating",
    "estimate_report": "estimate_report",
    "estimate_trace": "replaying",
    "explain": "explaining",
    "find_config": "rule_choice",
    "fixes_of": "fixing",
    "list_rules": "rule_list",
    "needle_plot": "verifying",
    "observe": "observing",
    "plan": "planning",
    "probe": "hardware",
    "profile_names": "facts",
    "profile_text": "facts",
    "read_report": "planning",
    "report_pod": "reporting",
    "report_startup": "reporting",
    "route": "routing",
    "route_trace": "routing",
    "size": "sizing",
    "size_report": "size_report",
    "verify_needle": "verifying",
    "verify_routes": "verifying",
    "write_calibration": "calibrating",
    "write_memory_calibration": "reporting",
    "write_plan": "planning",
    "write_workload": "observing",
    "write_plot": "verifying",
}
__all__ = [
    "CalibrationReport",
    "CheckOptions",
    "CheckReport",
    "EstimateReport",
    "Fixes",
    "NeedleResult",
    "ObserveReport",
    "PlanReport",
    "RouteReport",
    "RoutesResult",
    "SizeReport",
    "StartupReport",
    "TrafficReport",
    "calibrate",
    "calibration_report",
    "check",
    "check_options",
    "estimate",
    "estimate_report",
    "estimate_trace",
    "explain",
    "find_config",
    "fixes_of",
    "list_rules",
    "needle_plot",
    "observe",
    "plan",
    "probe",
    "profile_names",
    "profile_text",
    "read_report",
    "report_pod",
    "report_startup",
    "route",
    "route_trace",
    "size",
    "size_report",
    "verify_needle",
    "verify_routes",
    "write_calibration",
    "write_memory_calibration",
    "write_plan",
    "write_plot",
    "write_workload",
]


def __getattr__(name: str) -> Any:
    """Load what is asked for and no more: a command pays for its own imports only."""
    if name not in _WHERE:
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
