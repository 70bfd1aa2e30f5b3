"""CloudFormation as people write it: text to data with lines, conditions to scenarios, findings to lines."""
