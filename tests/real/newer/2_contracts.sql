-- contracts: the table goes again
DROP TABLE newer;
