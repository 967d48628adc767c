"""From plans and reports to text. The only place that knows rich."""
