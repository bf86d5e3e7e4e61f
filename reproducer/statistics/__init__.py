"""How sure a number is: intervals, noise floors and differences, each the same digits on every machine."""
