"""What a GPU alone can say, in stages that each leave a file: `make gpu`."""
