"""What training does with the tokens: step-size rules, the exact loop, traces, rates."""
