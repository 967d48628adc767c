"""Values of Helm charts into the servers that the chart makes of them."""
